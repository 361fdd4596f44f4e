// Finds the largest datagram that a path carries: bursts of sizes, from which the lower and upper
// bound close in on it. Assumes that a size passes where a larger one does; knows that any datagram
// may be lost. Pure.
#pragma once

#include <cstdint>
#include <vector>

namespace weft::doctor {

class SizeSearch {
 public:
  // `passes`: a size that is known to. `most`: the largest to try. A size counts as too large when
  // `tries` bursts in which it was sent brought nothing of it or of any larger one. `burst`: bytes
  // of one burst together, about; it has the two largest sizes at least.
  SizeSearch(uint32_t passes, uint32_t most, unsigned tries, uint32_t burst);

  // The sizes to send now, largest first; none when the search is over.
  const std::vector<uint32_t>& next();
  void arrived(uint32_t size);
  // The sender could not send it: larger than its interface allows.
  void refused(uint32_t size);
  // What has not arrived of the last burst will not.
  void burst_over() { ++bursts_; }

  // The largest size known to pass.
  uint32_t passes() const { return passes_; }

 private:
  static constexpr uint32_t kSizes = 16;  // most of a burst

  void choose();

  uint32_t passes_;
  uint32_t most_;
  const unsigned tries_;
  const uint32_t burst_;
  unsigned bursts_ = 0;  // of the sizes that stand
  std::vector<uint32_t> sizes_;
};

}  // namespace weft::doctor
