// Which datagrams of a channel have come (spec/wdp-rd 4.2): dropping copies, and saying it in
// RDACKs.
#pragma once

#include <cstdint>
#include <memory>

#include "base/types.h"
#include "wdp/rd_limits.h"
#include "wire/wdp_ack.h"

namespace weft::wdp {

// Of one channel and direction. Not thread-safe. Its bitmap is there while there are gaps.
class CsnWindow {
 public:
  // `first`: the CSN that the peer begins with.
  explicit CsnWindow(Csn first) : cum_(first) {}

  enum class Seen : uint8_t { first_time, before, too_far };
  Seen look(Csn csn) const;
  // It has come for the first time, and is kept or delivered.
  void take(Csn csn);
  // Before it all have come.
  Csn cum() const { return cum_; }
  bool gaps() const { return held_ > 0; }
  // Fills in CUM and the bitmap.
  void tell(wire::WdpAck& ack) const;

 private:
  static constexpr size_t kWords = kCsnWindow / 64;
  bool holds(Csn csn) const {
    const uint32_t i = csn.value() % kCsnWindow;
    return bits_ != nullptr && ((*bits_)[i / 64] >> (i % 64) & 1) != 0;
  }

  Csn cum_;
  uint32_t held_ = 0;  // beyond cum_
  std::unique_ptr<std::array<uint64_t, kWords>> bits_;
};

}  // namespace weft::wdp
