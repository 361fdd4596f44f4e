// RDACK, class 4: what an RD channel has received (spec/wdp-rd 4). Not acknowledged itself.
//
//    0        1         2        3        4               8               12
//   +--------+----+----+--------+--------+---------------+---------------+---------------+
//   | 0xD1   | 4  |C...| 0      | 0      | token         | CUM           | CRC32C        |
//   +--------+----+----+--------+--------+---------------+---------------+---------------+
//    16                          20              24        26     28             32
//   +---------------------------+---------------+---------+------+---------------+---------------+
//   | TS                        | TRIG          |ack delay| NW   | RWND          | CE            |
//   +---------------------------+---------------+---------+------+---------------+---------------+
//   | SACK words, NW of them: bit i, counted from the first word's MSB, is CSN CUM + 1 + i
//   +--------------------------------------------------------------------------------------------
#pragma once

#include <array>
#include <string>

#include "base/bytes.h"
#include "base/result.h"
#include "base/types.h"
#include "wire/wdp_common.h"

namespace weft::wire {

struct WdpAck {
  static constexpr size_t kSize = 36;  // without SACK words
  static constexpr size_t kMaxWords = 32;
  static constexpr size_t kMaxSize = kSize + 4 * kMaxWords;

  SessionToken token;
  Csn cum;                 // all before it have come
  uint32_t timestamp = 0;  // TS: the sender's clock, us
  Csn trigger;             // TRIG: the newest received when this was made
  uint16_t delay = 0;      // of the acknowledgement, in units of 8 us
  uint16_t words = 0;      // NW
  uint32_t window = 0;     // RWND: KiB that are buffered beyond CUM
  uint32_t ce = 0;         // datagrams that came marked ECN-CE
  std::array<uint32_t, kMaxWords> sack{};

  static Result<WdpAck, WdpDrop> parse(Bytes datagram);
  // The same into an object that is there, where `common` was parsed already. Where it fails,
  // nothing of it counts.
  Result<Ok, WdpDrop> read(const WdpCommon& common, Bytes datagram);
  // Writes size() bytes, CRC and all, and returns their number.
  size_t encode(std::byte* p) const;
  size_t size() const { return kSize + size_t{4} * words; }
  std::string to_string() const;
  friend constexpr bool operator==(const WdpAck&, const WdpAck&) = default;

  uint32_t delay_us() const { return uint32_t{delay} * 8; }
  // CUM itself is never held, or CUM would be greater.
  bool holds(Csn csn) const;
  // Marks it, with as many words as that takes. False when SACK does not reach that far.
  bool hold(Csn csn);
};

}  // namespace weft::wire
