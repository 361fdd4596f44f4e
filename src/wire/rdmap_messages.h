// RDMAP headers that follow the untagged DDP header: Read Request (RFC 5040 section 4.4), Immediate
// Data and Atomics (RFC 7306 sections 5 and 6). Fields stand in wire order; spec/rdmap 1.5 to 1.7
// has the offsets.
#pragma once

#include <string>

#include "base/bytes.h"
#include "base/types.h"

namespace weft::wire {

struct ReadRequest {
  static constexpr size_t kSize = 28;
  Stag sink_stag;
  TaggedOffset sink_to;
  uint32_t size = 0;  // RDMA Read Message Size, bytes
  Stag source_stag;
  TaggedOffset source_to;

  static ReadRequest parse(const std::byte* p) {
    return {Stag{load_be<uint32_t>(p)}, TaggedOffset{load_be<uint64_t>(p + 4)},
            load_be<uint32_t>(p + 12), Stag{load_be<uint32_t>(p + 16)},
            TaggedOffset{load_be<uint64_t>(p + 20)}};
  }
  void encode(std::byte* p) const {
    store_be(p, sink_stag.value());
    store_be(p + 4, sink_to.value());
    store_be(p + 12, size);
    store_be(p + 16, source_stag.value());
    store_be(p + 20, source_to.value());
  }
  std::string to_string() const;
};

// Eight opaque bytes; weft uses the first four (spec/rdmap 1.6).
struct Immediate {
  static constexpr size_t kSize = 8;
  uint32_t value = 0;  // as a big-endian number; verbs carries imm_data in wire order already

  static Immediate parse(const std::byte* p) { return {load_be<uint32_t>(p)}; }
  void encode(std::byte* p) const {
    store_be(p, value);
    store_be<uint32_t>(p + 4, 0);
  }
};

struct AtomicRequest {
  static constexpr size_t kSize = 52;
  enum class Code : uint8_t { fetch_add = 0, compare_swap = 2 };
  Code code{};  // low 4 bits of the first word; may hold values that are no Code
  uint32_t request_id = 0;
  Stag stag;
  TaggedOffset to;
  uint64_t add_swap = 0;
  uint64_t add_swap_mask = 0;
  uint64_t compare = 0;
  uint64_t compare_mask = 0;

  static AtomicRequest parse(const std::byte* p) {
    return {static_cast<Code>(load_be<uint32_t>(p) & 0x0f),
            load_be<uint32_t>(p + 4),
            Stag{load_be<uint32_t>(p + 8)},
            TaggedOffset{load_be<uint64_t>(p + 12)},
            load_be<uint64_t>(p + 20),
            load_be<uint64_t>(p + 28),
            load_be<uint64_t>(p + 36),
            load_be<uint64_t>(p + 44)};
  }
  void encode(std::byte* p) const {
    store_be(p, static_cast<uint32_t>(code));
    store_be(p + 4, request_id);
    store_be(p + 8, stag.value());
    store_be(p + 12, to.value());
    store_be(p + 20, add_swap);
    store_be(p + 28, add_swap_mask);
    store_be(p + 36, compare);
    store_be(p + 44, compare_mask);
  }
  std::string to_string() const;
};

struct AtomicResponse {
  static constexpr size_t kSize = 12;
  uint32_t request_id = 0;
  uint64_t original = 0;

  static AtomicResponse parse(const std::byte* p) {
    return {load_be<uint32_t>(p), load_be<uint64_t>(p + 4)};
  }
  void encode(std::byte* p) const {
    store_be(p, request_id);
    store_be(p + 4, original);
  }
};

// STag of an opcode-14 segment that reports a message waiting for a receive: 0x100 | min_rnr_timer
// code (spec/rdmap 4.5).
inline constexpr uint32_t kDeliveredWaiting = 0x100;

}  // namespace weft::wire
