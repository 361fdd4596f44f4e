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

#include <optional>
#include <utility>

#include "base/bytes.h"
#include "base/result.h"
#include "wire/wdp_ack.h"
#include "wire/wdp_common.h"
#include "wire/wdp_data.h"

namespace weft::wire {

struct WdpBundle {
  // Beside those that WdpClass names: only channels know it.
  static constexpr WdpClass kClass{5};
  static constexpr size_t kSize = WdpCommon::kSize;
  static constexpr size_t kFrame = 4;  // before each part

  // Takes the first part off `rest`, which is not empty. A failure leaves `rest` as it was.
  static Result<Bytes, WdpDrop> take(Bytes& rest);
  // All checks of the format: of the parts those that each would have to pass alone. Calls
  // f(const WdpData&, Bytes part) for each message before what is wrong, and reads the RDACK into
  // `ack`.
  template <class F>
  static Result<Ok, WdpDrop> read(const WdpCommon& common, Bytes datagram, F&& f,
                                  std::optional<WdpAck>& ack);
  // Writes the kFrame bytes before a part of `size` bytes, and returns its place.
  static std::byte* frame(std::byte* p, size_t size) {
    store_be(p, static_cast<uint16_t>(size));
    store_be<uint16_t>(p + 2, 0);
    return p + kFrame;
  }
};

template <class F>
Result<Ok, WdpDrop> WdpBundle::read(const WdpCommon& common, Bytes datagram, F&& f,
                                    std::optional<WdpAck>& ack) {
  if (common.wdp_class != kClass) return fail(WdpDrop::wrong_class);
  if (common.didx != kPortIndex || common.sidx != kPortIndex) return fail(WdpDrop::index_mismatch);
  Bytes rest = datagram.subspan(kSize);
  if (rest.empty()) return fail(WdpDrop::length_mismatch);
  while (!rest.empty()) {
    const auto part = take(rest);
    if (!part.ok()) return fail(part.error());
    WdpCommon front;
    if (const auto v = front.read(*part); !v.ok()) return v;
    if (front.wdp_class == WdpClass::rd) {
      WdpData message;
      if (const auto v = message.read(front, *part, part->size()); !v.ok()) return v;
      f(std::as_const(message), *part);
    } else if (front.wdp_class == WdpClass::rd_ack && rest.empty()) {
      if (const auto v = ack.emplace().read(front, *part); !v.ok()) return v;
    } else {
      return fail(WdpDrop::wrong_class);
    }
  }
  return Ok{};
}

}  // namespace weft::wire
