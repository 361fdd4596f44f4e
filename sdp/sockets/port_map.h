// Where a server listens for SDP beside a TCP port (spec/sdp 3.3).
#pragma once

#include <cstdint>

namespace weft::sdp {

constexpr uint16_t sdp_port(uint16_t tcp_port) {
  constexpr uint32_t kOffset = 21'000;
  constexpr uint32_t kReserved = 1024;
  constexpr uint32_t kRest = 65'536 - kReserved;
  if (tcp_port < kReserved) return static_cast<uint16_t>(tcp_port + kOffset);
  return static_cast<uint16_t>(kReserved + (tcp_port - kReserved + kOffset) % kRest);
}

}  // namespace weft::sdp
