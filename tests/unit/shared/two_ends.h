// Both ends of a ring in one process: what one end refers to the other one pulls from this process.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "shared/ring.h"
#include "tests/support/pattern.h"

namespace weft::shared {

using test::Buffer;
using test::pattern_bytes;

inline IoVec piece(const Buffer& b, size_t offset = 0) {
  return {const_cast<std::byte*>(b.data()) + offset, b.size() - offset};
}

// A ring as both ends map it.
struct RingMemory {
  RingMemory() : bytes(std::make_unique<Aligned>()) { control.reader_sleeps = 1; }
  RingPlace place() { return {&control, bytes->data.data()}; }
  RingControl control{};
  struct Aligned {
    alignas(64) std::array<std::byte, kRingBytes> data;
  };
  std::unique_ptr<Aligned> bytes;
};

inline const wire::HostOffer::Nonce kNonce{std::byte{3}, std::byte{1}, std::byte{4},
                                           std::byte{1}, std::byte{5}, std::byte{9}};

inline PeerMemory this_process() {
  return {::getpid(), reinterpret_cast<uintptr_t>(kNonce.data()), kNonce};
}

// Pieces of this size and more the writers of these tests refer to.
inline constexpr size_t kReferFrom = 24 * 1024;

// Nothing of what is written is the caller's own: it may all be referred to.
inline constexpr Bytes kNotOwn{};

}  // namespace weft::shared
