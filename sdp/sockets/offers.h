// When a receive that finds nothing offers its buffer to the peer (Write ZCopy): from so many bytes
// on, and less often on a connection whose peer sends something else.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weft::sdp {

// From how many bytes on.
struct OfferThreshold {
  static constexpr uint32_t kNever = 0;
  // A buffer holds at least the payload of a message (spec/sdp 7, 7).
  static constexpr uint32_t kLeast = 32 << 10;
  uint32_t bytes = kNever;

  // `WEFT_SDP_SINK_AVAIL`: a number of bytes from kLeast on, or 0 for never. Nothing if it is
  // neither.
  static std::optional<OfferThreshold> parse(std::string_view text);
  // What the environment of the process says.
  static OfferThreshold of_process();
  // A sentence, if that is neither: then it is never.
  static std::optional<std::string> wrong_in_process();
};

class Offers {
 public:
  explicit Offers(OfferThreshold threshold) : threshold_(threshold) {}

  bool worth(size_t bytes) const {
    return threshold_.bytes != OfferThreshold::kNever && bytes >= threshold_.bytes;
  }
  // Whether this wait offers.
  bool now() {
    if (skip_ == 0) return true;
    --skip_;
    return false;
  }
  // What the offer came to. Each one in vain costs three messages.
  void result(bool written) {
    interval_ = written ? 0 : std::min(2 * interval_ + 1, kLongestInterval);
    skip_ = interval_;
  }

 private:
  static constexpr uint32_t kLongestInterval = 63;
  OfferThreshold threshold_;
  uint32_t interval_ = 0;  // waits between two offers
  uint32_t skip_ = 0;
};

}  // namespace weft::sdp
