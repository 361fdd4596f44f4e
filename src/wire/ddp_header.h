// DDP segment headers with the RDMAP control byte in them (RFC 5041 section 4, RFC 5040
// section 4.1; spec/rdmap 1.1 to 1.3).
//
//   tagged, 14 bytes                          untagged, 18 bytes
//   +-+-+-------+--+ +--+--+---------+       +-+-+-------+--+ +--+--+---------+
//   |T|L| rsvd  |DV| |RV|AW| opcode  |       |T|L| rsvd  |DV| |RV|AW| opcode  |
//   +-+-+-------+--+ +--+--+---------+       +-+-+-------+--+ +--+--+---------+
//   |             STag               |       |    Invalidate STag or imm      |
//   +--------------------------------+       +--------------------------------+
//   |        Tagged Offset (64)      |       |  Queue Number | MSN | MO (32 each)
//   +--------------------------------+       +--------------------------------+
//
// Reserved bits are sent 0 and ignored on receive (AW apart: spec/rdmap 4.2).
#pragma once

#include <string>

#include "base/bytes.h"
#include "base/types.h"
#include "wire/opcode.h"

namespace weft::wire {

inline constexpr uint8_t kDdpVersion = 1;
inline constexpr uint8_t kRdmapVersion = 1;

// The two control bytes that every DDP segment starts with.
struct Control {
  static constexpr size_t kSize = 2;
  bool tagged = false;
  bool last = false;
  bool ack_wanted = false;  // AW: the sender waits to see this message delivered
  uint8_t ddp_version = kDdpVersion;
  uint8_t rdmap_version = kRdmapVersion;
  Opcode opcode{};  // may hold 15, which is no opcode

  static Control parse(const std::byte* p) {
    const auto ddp = std::to_integer<uint8_t>(p[0]);
    const auto rdmap = std::to_integer<uint8_t>(p[1]);
    return {.tagged = (ddp & 0x80) != 0,
            .last = (ddp & 0x40) != 0,
            .ack_wanted = (rdmap & 0x10) != 0,
            .ddp_version = static_cast<uint8_t>(ddp & 0x03),
            .rdmap_version = static_cast<uint8_t>(rdmap >> 6),
            .opcode = static_cast<Opcode>(rdmap & 0x0f)};
  }
  uint16_t bits() const {
    const unsigned ddp = (tagged ? 0x80U : 0U) | (last ? 0x40U : 0U) | (ddp_version & 3U);
    const unsigned rdmap =
        (rdmap_version & 3U) << 6 | (ack_wanted ? 0x10U : 0U) | static_cast<uint8_t>(opcode);
    return static_cast<uint16_t>(ddp << 8 | rdmap);
  }
  void encode(std::byte* p) const { store_be(p, bits()); }
  std::string to_string() const;
};

struct TaggedHeader {
  static constexpr size_t kSize = 14;
  Control control{.tagged = true};
  Stag stag;
  TaggedOffset to;

  static TaggedHeader parse(const std::byte* p) {
    return {Control::parse(p), Stag{load_be<uint32_t>(p + 2)},
            TaggedOffset{load_be<uint64_t>(p + 6)}};
  }
  // In stores of eight bytes, as the header is copied and summed next: a load that spans several
  // small stores waits until they are in the cache.
  void encode(std::byte* p) const {
    store_be(p, uint64_t{control.bits()} << 48 | uint64_t{stag.value()} << 16 | to.value() >> 48);
    store_be(p + 6, to.value());
  }
  std::string to_string() const;
};

struct UntaggedHeader {
  static constexpr size_t kSize = 18;
  Control control;
  uint32_t ulp_word =
      0;  // Invalidate STag (opcodes 4, 6), immediate in wire order (12, 13), else 0
  QueueNumber qn;
  Msn msn;
  MessageOffset mo;

  static UntaggedHeader parse(const std::byte* p) {
    return {Control::parse(p), load_be<uint32_t>(p + 2), QueueNumber{load_be<uint32_t>(p + 6)},
            Msn{load_be<uint32_t>(p + 10)}, MessageOffset{load_be<uint32_t>(p + 14)}};
  }
  void encode(std::byte* p) const {
    store_be(p, uint64_t{control.bits()} << 48 | uint64_t{ulp_word} << 16 | qn.value() >> 16);
    store_be(p + 6, uint64_t{qn.value()} << 32 | msn.value());
    store_be(p + 14, mo.value());
  }
  std::string to_string() const;
};

constexpr size_t ddp_header_size(bool tagged) {
  return tagged ? TaggedHeader::kSize : UntaggedHeader::kSize;
}

// The least ULPDU that an opcode can have (spec/rdmap 1.4).
size_t min_ulpdu(Opcode op);

}  // namespace weft::wire
