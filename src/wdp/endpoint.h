// Where a WDP socket is, without a word of the operating system's. Value types.
#pragma once

#include <cstdint>
#include <functional>

#include "base/gid.h"

namespace weft::wdp {

struct Endpoint {
  Gid address;
  uint16_t port = 0;
  friend constexpr auto operator<=>(const Endpoint&, const Endpoint&) = default;
};

// Where datagrams go, and how.
struct Path {
  Endpoint to;
  Gid from;  // source address; zero: whichever the kernel takes
  uint8_t traffic_class = 0;
  uint8_t hop_limit = 0;  // 0: the socket's
  double rate = 0;        // in Gb/s at most; 0: as fast as can be
  friend constexpr bool operator==(const Path&, const Path&) = default;
};

}  // namespace weft::wdp

template <>
struct std::hash<weft::wdp::Endpoint> {
  size_t operator()(const weft::wdp::Endpoint& e) const noexcept {
    uint64_t words[2];
    std::memcpy(words, e.address.raw.data(), sizeof words);
    return std::hash<uint64_t>{}((words[0] ^ words[1] * 0x9e3779b97f4a7c15U) * 31 + e.port);
  }
};
