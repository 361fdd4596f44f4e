// What the library shows of its connections (`weft stat`): a memory file of the process, which
// others of the same user read by /proc/PID/fd. Numbers in the machine's own order.
//
//   StatHeader    with sums over the connections that have ended
//   StatSlot      one for each connection
#pragma once

#include <array>
#include <atomic>
#include <compare>
#include <cstddef>
#include <cstdint>

#include "base/gid.h"

namespace weft::sdp {

inline constexpr uint64_t kStatMagic = 0x7064732d74666577U;  // "weft-sdp"
inline constexpr uint32_t kStatLayout = 3;
// What the memory is called where /proc/PID/fd shows it.
inline constexpr const char* kStatName = "weft-sdp";
inline constexpr uint32_t kStatSlots = 16384;

enum class Transport : uint8_t { none, sdp, tcp };

// Why a connection is TCP's.
enum class Fallback : uint8_t {
  none,
  rules,        // they say so
  no_adapter,   // of this host
  no_port,      // none of SDP stands beside this one (spec/sdp 3.3)
  refused,      // nobody hears SDP there
  silent,       // no answer in time
  unreachable,  // the adapter knows no way there
  stranger,     // the answer was none of SDP
  remembered,   // none of the last reasons is long ago
  local,        // no memory, descriptors, or the like
  peer,         // a server's: the client came by TCP
  copied,       // its socket was, before it connected
};
inline constexpr size_t kFallbacks = static_cast<size_t>(Fallback::copied) + 1;
const char* text(Fallback reason);

// Of one connection. Whoever has its lock writes, anybody reads.
struct Traffic {
  using Number = std::atomic<uint64_t>;
  Number bytes_sent{0};
  Number bytes_received{0};
  Number messages_sent{0};
  Number messages_received{0};
  Number bytes_read{0};     // of those received: by RDMA Read
  Number bytes_written{0};  // of those received: by the peer's RDMA Write
  Number credits{0};        // messages that the peer would take now

  static void add(Number& number, uint64_t more) {
    number.store(number.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
  }
};

struct StatName {
  std::array<uint8_t, 16> address{};  // IPv4 as ::ffff:a.b.c.d
  uint16_t port = 0;

  auto operator<=>(const StatName&) const = default;
};

struct StatSlot {
  std::atomic<Transport> transport{Transport::none};  // none: nobody has it
  bool server = false;
  Fallback fallback = Fallback::none;
  std::atomic<bool> relayed{false};
  StatName own;
  StatName peer;
  alignas(64) Traffic traffic;
};

struct StatHeader {
  uint64_t magic = 0;
  uint32_t layout = 0;
  uint32_t pid = 0;                    // the owner, in its own PID namespace
  std::atomic<uint32_t> used{0};       // slots behind these were never taken
  std::atomic<uint64_t> connected{0};  // by SDP, since the beginning
  std::atomic<uint64_t> accepted{0};
  std::array<std::atomic<uint64_t>, kFallbacks> fallbacks{};
  Traffic ended;  // all that are not there any more
};

constexpr size_t kStatFirstSlot = 512;
static_assert(sizeof(StatHeader) <= kStatFirstSlot);
constexpr size_t stat_slot_offset(uint32_t slot) {
  return kStatFirstSlot + slot * sizeof(StatSlot);
}
constexpr size_t kStatBytes = stat_slot_offset(kStatSlots);

}  // namespace weft::sdp
