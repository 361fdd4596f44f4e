// The two messages that open a connection (spec/sdp 3). They travel as private data of the
// connection's start, header included.
#pragma once

#include <array>
#include <optional>

#include "sdp/wire/bsdh.h"

namespace weft::sdp {

inline constexpr uint8_t kMajorVersion = 2;
inline constexpr uint8_t kMinorVersion = 2;
inline constexpr uint8_t kInvalidateCapable = 0x01;  // takes Sends that invalidate

// Of the active side.
struct Hello {
  static constexpr uint32_t kSize = 92;

  uint8_t version_major = kMajorVersion;
  uint8_t version_minor = kMinorVersion;
  uint8_t ip_version = 4;
  uint8_t capabilities = 0;
  uint8_t max_adverts = 1;             // buffers that it lets the peer advertise at a time
  uint16_t bufs = 0;                   // receives that it has posted
  uint32_t desired_receive = 0;        // size that it wishes the peer's receives had
  uint32_t receive_size = 0;           // of its own receives, in bytes
  uint16_t port = 0;                   // its own
  std::array<std::byte, 16> source{};  // IPv4 addresses in the last four bytes
  std::array<std::byte, 16> destination{};

  // Nothing for what is shorter than kSize or no Hello, has a version that weft does not speak, or
  // lets nothing be advertised or sent.
  static std::optional<Hello> parse(Bytes private_data);
  void encode(std::byte* p) const;
};

// Of the passive side.
struct HelloAck {
  static constexpr uint32_t kSize = 196;

  uint8_t version_major = kMajorVersion;
  uint8_t version_minor = kMinorVersion;
  uint8_t capabilities = 0;
  uint8_t max_adverts = 1;
  uint16_t bufs = 0;
  uint32_t receive_size = 0;

  // As above. What a provider puts behind kSize bytes is not looked at.
  static std::optional<HelloAck> parse(Bytes private_data);
  void encode(std::byte* p) const;
};

// The least size of receives that a connection can work with: each message, and a byte of data.
inline constexpr uint32_t kSmallestReceive = Bsdh::kSize + 24;
// And how few of them: one for data, three that stay reserved (spec/sdp 4).
inline constexpr uint16_t kFewestBufs = 4;

}  // namespace weft::sdp
