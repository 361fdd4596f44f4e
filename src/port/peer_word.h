// A word in memory that another process writes to, and what it was when it was last looked at.
#pragma once

#include <atomic>
#include <cstdint>

namespace weft::port {

struct PeerWord {
  const std::atomic<uint64_t>* at = nullptr;
  uint64_t seen = 0;

  // Without a word nobody knows: it may have.
  bool has_changed() const { return at == nullptr || at->load(std::memory_order_relaxed) != seen; }
};

}  // namespace weft::port
