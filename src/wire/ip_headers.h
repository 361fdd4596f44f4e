// Sizes of the headers that stand in front of weft's in a packet, each without options.
#pragma once

#include <cstddef>

namespace weft::wire {

inline constexpr size_t kIpv4Header = 20;  // RFC 791 section 3.1
inline constexpr size_t kIpv6Header = 40;  // RFC 8200 section 3
inline constexpr size_t kTcpHeader = 20;   // RFC 9293 section 3.1
inline constexpr size_t kUdpHeader = 8;    // RFC 768

constexpr size_t ip_header(bool ipv4) {
  return ipv4 ? kIpv4Header : kIpv6Header;
}

// The most that a UDP datagram carries over IPv4.
inline constexpr size_t kMaxUdpPayload = 65535 - kIpv4Header - kUdpHeader;

// What a datagram takes of a packet besides its payload.
constexpr size_t udp_ip_headers(bool ipv4) {
  return ip_header(ipv4) + kUdpHeader;
}

}  // namespace weft::wire
