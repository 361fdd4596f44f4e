// TLV 1 of a channel's REQ (spec/wdp-rd 2.4): the sender has ended another channel between the same
// two ports because it was idle. What its DREQ says, for that may be lost.
#pragma once

#include <array>
#include <optional>

#include "base/bytes.h"
#include "wire/wdp_common.h"
#include "wire/wdp_tlv.h"

namespace weft::wire {

struct WdpEnded {
  static constexpr uint16_t kType = 1;
  static constexpr size_t kValueSize = 8;
  static constexpr size_t kSize = WdpTlv::kHeaderSize + kValueSize;

  SessionToken token;  // the receiver's, of the channel that has ended
  Psn taken;           // the highest CSN up to which all have come; nothing behind it was taken

  std::array<std::byte, kSize> encode() const;
  // In the TLVs of a parsed message; nothing where there is none, or one of another size.
  static std::optional<WdpEnded> find(Bytes tlvs);
};

}  // namespace weft::wire
