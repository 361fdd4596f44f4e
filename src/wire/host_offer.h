// What a Responder says of memory that it would share with an Initiator on its own host, in a Reply
// with the flag HO (spec/same-host 2.1). All in network byte order.
//
//    0         2         4         8         12        16          24          32        48
//   +---------+---------+---------+---------+---------+-----------+-----------+---------+
//   | Version | 0       | PID     | FD      | 0       | Namespace | Address   | Nonce   |
//   +---------+---------+---------+---------+---------+-----------+-----------+---------+
#pragma once

#include <array>
#include <optional>

#include "base/bytes.h"

namespace weft::wire {

struct HostOffer {
  static constexpr size_t kSize = 48;
  static constexpr uint16_t kVersion = 3;
  using Nonce = std::array<std::byte, 16>;

  uint32_t pid = 0;                // of the Responder's process, in its PID namespace
  uint32_t descriptor = 0;         // of the segment, in that process
  uint64_t network_namespace = 0;  // cookie of the network namespace of its socket
  uint64_t address = 0;            // where the segment begins in that process
  Nonce nonce{};

  // Reads kSize bytes. Nothing where the version is another one.
  static std::optional<HostOffer> parse(const std::byte* p);
  void encode(std::byte* p) const;
};

// Its choice: the first byte that an Initiator sends behind a Reply with an offer
// (spec/same-host 2.2).
enum class HostCarrier : uint8_t { tcp = 0, memory = 1 };

}  // namespace weft::wire
