#include "sdp/sockets/offers.h"

#include <charconv>
#include <cstdlib>

namespace weft::sdp {
namespace {

constexpr const char* kVariable = "WEFT_SDP_SINK_AVAIL";

}  // namespace

std::optional<OfferThreshold> OfferThreshold::parse(std::string_view text) {
  OfferThreshold threshold;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), threshold.bytes);
  if (error != std::errc{} || end != text.data() + text.size()) return {};
  if (threshold.bytes != kNever && threshold.bytes < kLeast) return {};
  return threshold;
}

OfferThreshold OfferThreshold::of_process() {
  const char* const text = secure_getenv(kVariable);
  return text == nullptr ? OfferThreshold{} : parse(text).value_or(OfferThreshold{});
}

std::optional<std::string> OfferThreshold::wrong_in_process() {
  const char* const text = secure_getenv(kVariable);
  if (text == nullptr || parse(text)) return {};
  return std::string{kVariable} + ": '" + text +
         "' is not 0 or a number of bytes from 32768 on; taken for 0";
}

}  // namespace weft::sdp
