// What WDP messages carry behind the data header: the range of a Read Request (spec/wdp-uc 5.1) and
// the records of a RESP message (spec/wdp-rd 6). Atomics carry the headers of rdmap_messages.h.
//
//   Read Request                    RESP record
//   +------------------------+      +------+------+------+-------+--------------+--------------+
//   | range length           |      | qidx | ridx | code | delay | MSN          | aux          |
//   +------------------------+      +------+------+------+-------+--------------+--------------+
//   | attempt                |       0      1      2      3       4              8
//   +------------------------+
#pragma once

#include <algorithm>
#include <string>

#include "base/bytes.h"
#include "base/types.h"

namespace weft::wire {

// The range begins at the header's MO. WdpData::parse() has checked that it lies inside the Read.
struct WdpReadRange {
  static constexpr size_t kSize = 8;
  // UC: a longer Read is asked for in pieces of this size at most.
  static constexpr uint32_t kMaxUcRange = 1 << 20;

  uint32_t length = 0;
  uint32_t attempt = 0;  // 0 on RD

  static WdpReadRange parse(const std::byte* p) {
    return {load_be<uint32_t>(p), load_be<uint32_t>(p + 4)};
  }
  void encode(std::byte* p) const {
    store_be(p, length);
    store_be(p + 4, attempt);
  }
  std::string to_string() const;
  friend constexpr bool operator==(const WdpReadRange&, const WdpReadRange&) = default;
};

// What became of the messages of one RD flow. The payload of a RESP message is n of these.
struct WdpResponse {
  static constexpr size_t kSize = 12;
  enum class Code : uint8_t {
    ack = 0,
    rnr = 1,
    not_ready = 2,  // or no such queue pair
    length = 3,
    access = 4,
    operation = 5,
    invalid_flow = 6,
    flush = 7,  // queue pair in error
    key = 8,    // another Q_Key
    ready = 9,  // there are receives again, after an RNR
  };

  uint8_t qidx = 0;  // the requester's index
  uint8_t ridx = 0;  // the responder's index
  Code code{};       // may hold values that are no Code
  uint8_t delay = 0;
  Msn msn;           // ack: all up to and with this one; else the one that failed
  uint32_t aux = 0;  // Terminate's layer, type and code, or the expected MSN

  static WdpResponse parse(const std::byte* p) {
    return {std::to_integer<uint8_t>(p[0]), std::to_integer<uint8_t>(p[1]),
            static_cast<Code>(p[2]),        std::to_integer<uint8_t>(p[3]),
            Msn{load_be<uint32_t>(p + 4)},  load_be<uint32_t>(p + 8)};
  }
  void encode(std::byte* p) const {
    p[0] = std::byte{qidx};
    p[1] = std::byte{ridx};
    p[2] = static_cast<std::byte>(code);
    p[3] = std::byte{delay};
    store_be(p + 4, msn.value());
    store_be(p + 8, aux);
  }
  // 2^delay * 10 us. Ends at 2^16, the longest wait that InfiniBand has a code for (655.36 ms).
  uint32_t delay_us() const { return 10U << std::min<unsigned>(delay, 16); }
  std::string to_string() const;
  friend constexpr bool operator==(const WdpResponse&, const WdpResponse&) = default;
};
const char* to_string(WdpResponse::Code code);

}  // namespace weft::wire
