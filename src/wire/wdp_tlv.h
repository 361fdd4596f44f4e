// TLVs, with which CTL messages are extended (spec/wdp 3.3).
//
//   +-+---------------+-----------------+----------------------+-----------------+
//   |C| type (15)     | len             | value, len bytes     | 0 to 3 zeros    |
//   +-+---------------+-----------------+----------------------+-----------------+
//
// len counts the value alone; TLVLEN of the message counts everything, padding included.
#pragma once

#include <string>

#include "base/bytes.h"
#include "base/result.h"
#include "wire/wdp_drop.h"

namespace weft::wire {

constexpr size_t wdp_padded(size_t n) {
  return (n + 3) & ~size_t{3};
}

struct WdpTlv {
  static constexpr size_t kHeaderSize = 4;

  uint16_t type = 0;      // 15 bits
  bool critical = false;  // C: a receiver that does not know it refuses the message (REJ 7)
  Bytes value;            // in the bytes that it was taken from

  // Takes the first TLV off `tlvs`, which is not empty. bad_tlv leaves `tlvs` as it was.
  static Result<WdpTlv, WdpDrop> take(Bytes& tlvs);
  size_t size() const { return kHeaderSize + wdp_padded(value.size()); }
  // Writes size() bytes and returns their number.
  size_t encode(std::byte* p) const;
  std::string to_string() const;
};

// Is there one that a receiver which knows none has to refuse? `tlvs` are those of a parsed
// message.
bool has_critical_tlv(Bytes tlvs);

}  // namespace weft::wire
