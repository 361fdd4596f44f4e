// Where a server listens for SDP beside a TCP port (spec/sdp 3.3).
#pragma once

#include <cstdint>
#include <optional>

namespace weft::sdp {

// Ports that systems give to clients, 32768 to 60999, change places with those 30000 below them: a
// server's port of SDP is then among the clients' at most when its own is not, and two servers
// never meet. What is left goes to the ports above, which have none themselves.
constexpr std::optional<uint16_t> sdp_port(uint16_t tcp_port) {
  constexpr uint32_t kFirst = 32'768;
  constexpr uint32_t kEnd = 61'000;
  constexpr uint32_t kBelow = 30'000;
  const uint32_t p = tcp_port;
  if (p >= kEnd) return std::nullopt;
  if (p >= kFirst) return static_cast<uint16_t>(p - kBelow);
  if (p >= kFirst - kBelow && p < kEnd - kBelow) return static_cast<uint16_t>(p + kBelow);
  if (p < kFirst - kBelow) return static_cast<uint16_t>(p + kEnd);
  return static_cast<uint16_t>(p - (kEnd - kBelow) + kEnd + (kFirst - kBelow));
}

}  // namespace weft::sdp
