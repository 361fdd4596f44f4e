#include "sdp/sockets/offers.h"

#include "sdp/sockets/variable.h"

namespace weft::sdp {
namespace {

constexpr const char* kVariable = "WEFT_SDP_SINK_AVAIL";

}  // namespace

std::optional<OfferThreshold> OfferThreshold::parse(std::string_view text) {
  return parse_bytes<OfferThreshold>(text);
}

OfferThreshold OfferThreshold::of_process() {
  return threshold_of_process<OfferThreshold>(kVariable);
}

std::optional<std::string> OfferThreshold::wrong_in_process() {
  return sdp::wrong_in_process<OfferThreshold>(kVariable,
                                               "0 or a number of bytes from 32768 on; taken for 0");
}

}  // namespace weft::sdp
