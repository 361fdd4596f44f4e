// Bundle, class 5: messages of an RD channel that share a datagram, and perhaps the RDACK behind
// them (spec/wdp-rd 6.7). It has one CSN, and is lost or comes as a whole.
//
//    0        1         2        3        4               8               12
//   +--------+----+----+--------+--------+---------------+---------------+---------------+
//   | 0xD1   | 5  |C.AR| 0      | 0      | token         | CSN           | CRC32C or 0   |
//   +--------+----+----+--------+--------+---------------+---------------+---------------+
//    16       18       20
//   +--------+--------+-----------------------+--------+--------+-----------------------
//   | length | 0      | part: class 3, then 4 | length | 0      | part ..
//   +--------+--------+-----------------------+--------+--------+-----------------------
//
// A part is a datagram as it would go alone. Nobody looks at its token and CSN.
#pragma once

#include "base/bytes.h"
#include "base/result.h"
#include "wire/wdp_common.h"

namespace weft::wire {

struct WdpBundle {
  // Beside those that WdpClass names: only channels know it.
  static constexpr WdpClass kClass{5};
  static constexpr size_t kSize = WdpCommon::kSize;
  static constexpr size_t kFrame = 4;  // before each part

  // Takes the first part off `rest`, which is not empty. A failure leaves `rest` as it was.
  static Result<Bytes, WdpDrop> take(Bytes& rest);
  // All checks of the format: of the parts those that each would have to pass alone.
  static Result<Ok, WdpDrop> check(const WdpCommon& common, Bytes datagram);
  // Writes the kFrame bytes before a part of `size` bytes, and returns its place.
  static std::byte* frame(std::byte* p, size_t size) {
    store_be(p, static_cast<uint16_t>(size));
    store_be<uint16_t>(p + 2, 0);
    return p + kFrame;
  }
};

}  // namespace weft::wire
