#include "bench/sdp_modes.h"

#include <algorithm>

namespace weft::bench {
namespace {

// 0: never; a number of bytes: from there on.
constexpr const char* kThreshold = "WEFT_SDP_ZCOPY_THRESH";
constexpr const char* kOffers = "WEFT_SDP_SINK_AVAIL";

constexpr std::array kModes{
    SdpMode{.name = "tcp", .preloaded = false, .same_host = false, .relayed = false},
    // From the program's calls: by copies, or large sends in place, by what both cost.
    SdpMode{.name = "sdp", .preloaded = true, .same_host = true, .relayed = false},
    SdpMode{.name = "sdp-copied",
            .preloaded = true,
            .same_host = true,
            .relayed = false,
            .environment = {kThreshold, "0"}},
    // Read ZCopy from the smallest threshold on.
    SdpMode{.name = "sdp-in-place",
            .preloaded = true,
            .same_host = true,
            .relayed = false,
            .environment = {kThreshold, "4096"}},
    // Write ZCopy where the receiver waits first, else Read ZCopy.
    SdpMode{.name = "sdp-written",
            .preloaded = true,
            .same_host = true,
            .relayed = false,
            .environment = {kThreshold, "4096", kOffers, "32768"}},
    // The same as between two hosts: the adapter over TCP.
    SdpMode{.name = "sdp-wire", .preloaded = true, .same_host = false, .relayed = false},
    SdpMode{.name = "sdp-wire-copied",
            .preloaded = true,
            .same_host = false,
            .relayed = false,
            .environment = {kThreshold, "0"}},
    SdpMode{.name = "sdp-wire-in-place",
            .preloaded = true,
            .same_host = false,
            .relayed = false,
            .environment = {kThreshold, "4096"}},
    SdpMode{.name = "sdp-wire-written",
            .preloaded = true,
            .same_host = false,
            .relayed = false,
            .environment = {kThreshold, "4096", kOffers, "32768"}},
    // One copy and one thread more on each side.
    SdpMode{.name = "sdp-relay", .preloaded = true, .same_host = true, .relayed = true},
};

}  // namespace

std::span<const SdpMode> sdp_modes() {
  return kModes;
}

const SdpMode* find_sdp_mode(std::string_view name) {
  const auto found =
      std::find_if(kModes.begin(), kModes.end(), [&](const SdpMode& m) { return m.name == name; });
  return found == kModes.end() ? nullptr : &*found;
}

}  // namespace weft::bench
