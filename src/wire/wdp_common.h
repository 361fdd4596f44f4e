// The first 16 bytes of every WDP datagram (spec/wdp 2.2). Enough to find whom it is for.
//
//    0          1            2        3        4               8               12
//   +----+-----+-----+------+--------+--------+---------------+---------------+---------------+
//   | 0xD|ver 1|class|CIAR  | didx   | sidx   | token         | PSN, or by    | CRC32C,       |
//   |    |     |     | flags |        |        | (UD: Q_Key)   | class         | little-endian |
//   +----+-----+-----+------+--------+--------+---------------+---------------+---------------+
#pragma once

#include <string>

#include "base/bytes.h"
#include "base/result.h"
#include "base/types.h"
#include "wire/ip_headers.h"
#include "wire/wdp_drop.h"

namespace weft::wire {

inline constexpr uint8_t kWdpMagic = 0xd;
inline constexpr uint8_t kWdpVersion = 1;

// Index bytes (spec/wdp 2.2): 1 to 254 are queue pairs.
inline constexpr uint8_t kPortIndex = 0;  // the port itself: a listener, an RD channel
inline constexpr uint8_t kMulticastIndex = 255;
constexpr bool is_queue_pair(uint8_t index) {
  return index != kPortIndex && index != kMulticastIndex;
}

enum class WdpClass : uint8_t { ctl = 0, uc = 1, ud = 2, rd = 3, rd_ack = 4 };
const char* to_string(WdpClass c);

// Low nibble of byte 1. A class for which a flag means nothing ignores it.
struct WdpFlags {
  bool crc = false;             // F_CRC: the CRC field is valid
  bool immediate = false;       // F_IMM: the IMM field is valid
  bool ack_requested = false;   // F_ACKREQ: RD, acknowledge now
  bool retransmission = false;  // F_RETX: RD, not sent for the first time

  static WdpFlags from_bits(uint8_t bits) {
    return {.crc = (bits & 8) != 0,
            .immediate = (bits & 4) != 0,
            .ack_requested = (bits & 2) != 0,
            .retransmission = (bits & 1) != 0};
  }
  friend constexpr bool operator==(const WdpFlags&, const WdpFlags&) = default;
  uint8_t bits() const {
    return static_cast<uint8_t>((crc ? 8 : 0) | (immediate ? 4 : 0) | (ack_requested ? 2 : 0) |
                                (retransmission ? 1 : 0));
  }
};

struct WdpCommon {
  static constexpr size_t kSize = 16;

  WdpClass wdp_class{};
  WdpFlags flags;
  uint8_t didx = 0;         // low byte of the destination QPN
  uint8_t sidx = 0;         // low byte of the source QPN
  SessionToken token;       // the receiver's; in UD the Q_Key, in the first CTL 0
  uint32_t class_word = 0;  // offset 8: PSN, CSN, or what the class puts there

  // too_short, not_wdp, other_version or unknown_class.
  static Result<WdpCommon, WdpDrop> parse(Bytes datagram);
  // The same into an object that is there. Where it fails, nothing of it counts.
  Result<Ok, WdpDrop> read(Bytes datagram);
  // The fields alone, of kSize bytes that read() has found right.
  void decode(const std::byte* p);
  // Writes kSize bytes, the CRC field as 0.
  void encode(std::byte* p) const;
  std::string to_string() const;
  friend constexpr bool operator==(const WdpCommon&, const WdpCommon&) = default;
};

}  // namespace weft::wire
