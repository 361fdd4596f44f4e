// Terminate message: RFC 5040 section 4.8 (spec/errors 1.1), and the layout that Linux siw sends
// instead (spec/errors 1.2).
//
//   +-------+-------+---------------+-+-+-+-------------------------+
//   | Layer | EType |  Error Code   |M|D|R|        reserved         |
//   +-------+-------+---------------+-+-+-+-------------------------+
//   | DDP Segment Length            |  terminated DDP header, RDMAP header ..
//   +-------------------------------+
#pragma once

#include <array>
#include <string>

#include "base/bytes.h"
#include "base/result.h"
#include "wire/refusal.h"

namespace weft::wire {

enum class Layer : uint8_t { rdmap = 0, ddp = 1, llp = 2 };

// Layer, error type and code: RFC 5040 section 4.8, RFC 5041 section 7.2, RFC 5044 section 8
// (spec/errors 2). `why` is not on the wire: it tells this side's counters which check it was.
struct TermError {
  Layer layer{};
  uint8_t etype = 0;
  uint8_t code = 0;
  Refusal why = Refusal::other;

  constexpr TermError because(Refusal reason) const { return {layer, etype, code, reason}; }
  friend constexpr bool operator==(const TermError& a, const TermError& b) {
    return a.layer == b.layer && a.etype == b.etype && a.code == b.code;
  }
  std::string to_string() const;
};

}  // namespace weft::wire

template <>
struct weft::ErrorBits<weft::wire::TermError> {
  static constexpr uint32_t pack(wire::TermError e) {
    return static_cast<uint32_t>(e.why) << 24 | static_cast<uint32_t>(e.layer) << 16 |
           static_cast<uint32_t>(e.etype) << 8 | e.code;
  }
  static constexpr wire::TermError unpack(uint32_t bits) {
    return {static_cast<wire::Layer>(bits >> 16 & 0xff), static_cast<uint8_t>(bits >> 8),
            static_cast<uint8_t>(bits), static_cast<wire::Refusal>(bits >> 24)};
  }
};

namespace weft::wire {

namespace term {
inline constexpr TermError kLocalCatastrophic{Layer::rdmap, 0, 0x00};
inline constexpr TermError kProtectionInvalidStag{Layer::rdmap, 1, 0x00};
inline constexpr TermError kProtectionBounds{Layer::rdmap, 1, 0x01};
inline constexpr TermError kProtectionAccess{Layer::rdmap, 1, 0x02};
inline constexpr TermError kProtectionNotOnStream{Layer::rdmap, 1, 0x03};
inline constexpr TermError kProtectionToWrap{Layer::rdmap, 1, 0x04};
inline constexpr TermError kProtectionCannotInvalidate{Layer::rdmap, 1, 0x09};
inline constexpr TermError kProtectionUnspecified{Layer::rdmap, 1, 0xff};
inline constexpr TermError kOperationVersion{Layer::rdmap, 2, 0x05};
inline constexpr TermError kOperationUnexpectedOpcode{Layer::rdmap, 2, 0x06};
inline constexpr TermError kOperationCatastrophicStream{Layer::rdmap, 2, 0x07};
inline constexpr TermError kOperationCannotInvalidate{Layer::rdmap, 2, 0x09};
inline constexpr TermError kOperationUnspecified{Layer::rdmap, 2, 0xff};
inline constexpr TermError kDdpCatastrophic{Layer::ddp, 0, 0x00};
inline constexpr TermError kTaggedInvalidStag{Layer::ddp, 1, 0x00};
inline constexpr TermError kTaggedBounds{Layer::ddp, 1, 0x01};
inline constexpr TermError kTaggedNotOnStream{Layer::ddp, 1, 0x02};
inline constexpr TermError kTaggedToWrap{Layer::ddp, 1, 0x03};
inline constexpr TermError kTaggedVersion{Layer::ddp, 1, 0x04};
inline constexpr TermError kUntaggedInvalidQn{Layer::ddp, 2, 0x01};
inline constexpr TermError kUntaggedNoBuffer{Layer::ddp, 2, 0x02};
inline constexpr TermError kUntaggedMsnRange{Layer::ddp, 2, 0x03};
inline constexpr TermError kUntaggedInvalidMo{Layer::ddp, 2, 0x04};
inline constexpr TermError kUntaggedTooLong{Layer::ddp, 2, 0x05};
inline constexpr TermError kUntaggedVersion{Layer::ddp, 2, 0x06};
inline constexpr TermError kMpaConnectionLost{Layer::llp, 0, 0x01};
inline constexpr TermError kMpaCrc{Layer::llp, 0, 0x02};
inline constexpr TermError kMpaLength{Layer::llp, 0, 0x03};
inline constexpr TermError kMpaBadFrame{Layer::llp, 0, 0x04};
inline constexpr TermError kMpaInsufficientIrd{Layer::llp, 0, 0x06};
inline constexpr TermError kMpaNoMatchingRtr{Layer::llp, 0, 0x07};
}  // namespace term

// What a Terminate says, in either layout.
struct Terminate {
  // 4 bytes of control, 2 of length, 18 of DDP header, 52 of Atomic Request at most.
  static constexpr size_t kMaxSize = 4 + 2 + 18 + 52;

  // Which bit order the sender used.
  enum class Layout : uint8_t { rfc, siw };

  TermError error;
  Layout layout = Layout::rfc;      // as parsed; encode() knows the RFC's alone
  bool has_segment_length = false;  // M
  uint16_t segment_length = 0;      // of the offending segment; meaningless in siw's layout
  uint8_t ddp_header_size = 0;      // D: 0, 14 or 18
  uint8_t rdmap_header_size = 0;    // R: 0, 28 or 52
  std::array<std::byte, 18> ddp_header{};
  std::array<std::byte, 52> rdmap_header{};

  // Writes RFC layout to `p` (room for kMaxSize) and returns the bytes written.
  size_t encode(std::byte* p) const;

  // Decodes what follows the untagged header. `extension`: X was negotiated, so the layout is the
  // RFC's. `started`: the stream is past its start-up. Bytes that are missing leave their parts
  // out; less than four bytes decode as an unspecified RDMAP error.
  static Terminate parse(Bytes payload, bool extension, bool started);
  static Layout guess_layout(uint8_t first, uint8_t code, uint8_t control, bool started);
  std::string to_string() const;
};

}  // namespace weft::wire
