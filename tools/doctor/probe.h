// The datagrams that two doctors exchange. 64 bytes of header, big-endian, and behind it bytes that
// differ from one to the next:
//
//    0  magic "WFDR"      4  version 1    5  kind       6  0, 0
//    8  token of the session              16  cookie (hail_answer), else 0
//   24  round            28  id          32  size of the datagram
//   36  address that the hail came from, as a GID      52  its port      54  0
//
// A `hail` is answered by a `hail_answer` of 64 bytes, a `probe` by nothing: what came is asked for
// over TCP. A datagram whose token nobody knows is dropped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/gid.h"
#include "wire/ip_headers.h"

namespace weft::doctor {

inline constexpr size_t kProbeHeader = 64;
inline constexpr size_t kMostDatagram = wire::kMaxUdpPayload;

struct Probe {
  enum class Kind : uint8_t { hail = 1, hail_answer = 2, probe = 3 };
  Kind kind = Kind::probe;
  uint64_t token = 0;
  uint64_t cookie = 0;  // shows, said over TCP, that its sender hears what is sent to its address
  uint32_t round = 0;   // grows from one burst to the next
  uint32_t id = 0;      // within the round
  Gid seen;
  uint16_t seen_port = 0;

  // `size` bytes, at least kProbeHeader.
  std::vector<std::byte> encode(size_t size) const;
  // Nothing where the bytes are no whole datagram of a doctor's.
  static std::optional<Probe> parse(std::span<const std::byte> datagram);
};

}  // namespace weft::doctor
