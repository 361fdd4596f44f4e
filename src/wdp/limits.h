// Sizes and times of WDP that are the same everywhere.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "base/time.h"

namespace weft::wdp {

using namespace std::chrono_literals;

// spec/wdp-uc 3.2.
inline constexpr uint32_t kPsnWindow = 4096;
inline constexpr int32_t kMostPsnJump = 1 << 20;  // more than this is no outage
inline constexpr uint32_t kResyncAfter = 16;      // datagrams

// spec/wdp-uc 3.3: the bounds within which reordering does no harm.
inline constexpr size_t kMostHeld = 128;
inline constexpr size_t kMostHeldBytes = 1 << 20;
inline constexpr Duration kHoldFor = 250us;

// spec/wdp-uc 3.4, 3.6: contexts of 256 KiB of bitmap at most.
inline constexpr int32_t kMsnWindow = 1024;
inline constexpr size_t kMostContexts = 16;
inline constexpr uint32_t kMostSegmentsOfMessage = 1 << 21;

// spec/wdp-uc 5.
inline constexpr Duration kLeastReadTimeout = 10ms;
inline constexpr Duration kMostReadTimeout = 1s;  // before it doubles
inline constexpr Duration kMostDoubledTimeout = 4s;
inline constexpr size_t kMostReRequests = 64;
inline constexpr size_t kRememberedRequests = 64;

// A peer close by: a LAN, and what an answer takes there on a busy machine besides.
inline constexpr Duration kCloseBy = 10ms;
constexpr bool is_close_by(Duration round_trip) {
  return round_trip < kCloseBy;
}

// spec/wdp 5.
inline constexpr Duration kKeepaliveAfter = 10s;
inline constexpr Duration kKeepaliveEvery = 1s;
inline constexpr uint32_t kKeepaliveTries = 5;
inline constexpr Duration kDreqEvery = 100ms;
inline constexpr uint32_t kDreqTries = 3;
inline constexpr Duration kTimeWait = 2s;
// How long a DREQ waits for data that it has overtaken. Nothing stands behind it, so it can be more
// patient than what kHoldFor bounds; the network delivers no later what it has not lost.
inline constexpr Duration kGoodbyeHold = 10ms;
inline constexpr uint32_t kErrorsPerSecond = 10;

}  // namespace weft::wdp
