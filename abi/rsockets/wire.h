// What two rsockets say to each other (spec/rsockets 2 and 3).
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "base/bytes.h"

namespace weft::rsockets {

// Memory of one side that the other one may write to. In the lists that the peer fills by RDMA
// Writes it lies like this, in the byte order of this host.
struct Target {
  uint64_t address = 0;
  uint32_t key = 0;
  uint32_t length = 0;  // bytes
};
static_assert(sizeof(Target) == 16);

// An entry of a list of mapped memory (riomap).
struct MappedTarget {
  uint64_t offset = 0;
  Target target;
};
static_assert(sizeof(MappedTarget) == 24);

// How many Targets a side has in the list that its peer fills.
inline constexpr uint32_t kTargets = 2;

// The private data of a connection's request and of its reply.
struct ConnectData {
  static constexpr uint32_t kSize = 40;

  uint16_t credits = 0;       // messages that the peer may send at first
  uint32_t mapped_slots = 0;  // entries for MappedTargets behind the Targets
  Target list;                // where the Targets are; its length is their number
  Target buffer;              // the first piece of the receive buffer

  // Nothing for what is too short, of another version, of a host of the other byte order, or has no
  // list.
  static std::optional<ConnectData> parse(Bytes private_data);
  std::array<std::byte, kSize> encode() const;
};

// The number of slots that a byte can say which is nearest to `slots` and not below it where that
// is possible.
uint32_t sayable_slots(uint32_t slots);

// A message: three bits of what it is, 29 of what it says.
struct Message {
  enum class Kind : uint32_t { data = 0, target = 4, mapped = 6, control = 7 };
  static constexpr uint32_t kValueMask = 0x1FFF'FFFF;
  static constexpr uint32_t kDisconnect = 0;
  static constexpr uint32_t kShutdown = 2;

  Kind kind = Kind::data;
  uint32_t value = 0;

  static constexpr Message of(uint32_t word) {
    return {static_cast<Kind>(word >> 29), word & kValueMask};
  }
  constexpr uint32_t word() const { return static_cast<uint32_t>(kind) << 29 | value; }
};

}  // namespace weft::rsockets
