// GID: a port's address. On weft it is an IP address: IPv6, or IPv4 in its mapped form
// ::ffff:a.b.c.d (spec/addressing 1).
#pragma once

#include <array>
#include <bit>
#include <compare>
#include <cstdint>
#include <cstring>
#include <string>

namespace weft {

struct Gid {
  std::array<uint8_t, 16> raw{};

  friend constexpr auto operator<=>(const Gid&, const Gid&) = default;
  // Asked of each datagram: two words, and no call of memcmp(3).
  friend constexpr bool operator==(const Gid& a, const Gid& b) {
    const auto x = a.words();
    const auto y = b.words();
    return x[0] == y[0] && x[1] == y[1];
  }

  // `address` in host byte order: 127.0.0.1 is 0x7f000001.
  static constexpr Gid from_ipv4(uint32_t address) {
    Gid g;
    g.raw[10] = g.raw[11] = 0xff;
    for (int i = 0; i < 4; ++i) g.raw[12 + i] = static_cast<uint8_t>(address >> (24 - 8 * i));
    return g;
  }
  constexpr bool is_ipv4() const {
    using Quarters = std::array<uint32_t, 4>;
    constexpr std::array<uint8_t, 4> kThird{0, 0, 0xff, 0xff};
    const auto q = std::bit_cast<Quarters>(raw);
    return q[0] == 0 && q[1] == 0 && q[2] == std::bit_cast<uint32_t>(kThird);
  }
  // Host byte order; only when is_ipv4().
  constexpr uint32_t ipv4() const {
    return static_cast<uint32_t>(raw[12]) << 24 | static_cast<uint32_t>(raw[13]) << 16 |
           static_cast<uint32_t>(raw[14]) << 8 | raw[15];
  }
  constexpr bool is_zero() const { return *this == Gid{}; }
  constexpr bool is_link_local() const { return raw[0] == 0xfe && (raw[1] & 0xc0) == 0x80; }
  // The raw bytes as they lie in memory.
  constexpr std::array<uint64_t, 2> words() const {
    return std::bit_cast<std::array<uint64_t, 2>>(raw);
  }
  // "192.0.2.1" or "2001:db8::1", as inet_ntop(3) writes it.
  std::string to_string() const;
};

}  // namespace weft
