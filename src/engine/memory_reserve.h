// Memory that is kept for the moment when there is none: enough to end connections in order.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <new>
#include <utility>

#include "stats/cell.h"

namespace weft::engine {

// Engine holder only.
class MemoryReserve {
 public:
  // `spent`: counts how often it was needed.
  explicit MemoryReserve(stats::Cell& spent) : spent_(spent) { renew(); }

  // Does `work`, and where there is no memory for it `otherwise`, for which a piece of the reserve
  // is freed. Where there is no memory for that either, says so: nothing is thrown.
  template <class Work, class Otherwise>
  void guard(Work&& work, Otherwise&& otherwise) {
    try {
      work();
    } catch (const std::bad_alloc&) {
      spend();
      try {
        otherwise();
      } catch (const std::bad_alloc&) {
        report_failure();
      }
    }
  }
  // At the end of a turn: takes back what was spent, as far as there is memory again.
  void restore() {
    if (!whole_) renew();
  }

 private:
  // Less than malloc maps apart, so that what is freed is there for small pieces.
  static constexpr size_t kPiece = size_t{16} << 10;

  void spend();
  void renew();
  static void report_failure();

  stats::Cell& spent_;
  std::array<std::unique_ptr<std::byte[]>, 16> pieces_;
  bool whole_ = false;
};

}  // namespace weft::engine
