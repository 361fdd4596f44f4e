#include "sdp/wire/extended_headers.h"

namespace weft::sdp {
namespace {

constexpr unsigned kSendHalf = 0x8;

}  // namespace

std::optional<ModeChange> ModeChange::parse(const std::byte* p) {
  const unsigned bits = static_cast<unsigned>(p[0]) >> 4;
  const unsigned mode = bits & ~kSendHalf;
  if (mode > static_cast<unsigned>(Mode::pipelined)) return std::nullopt;
  return ModeChange{(bits & kSendHalf) != 0, static_cast<Mode>(mode)};
}

void ModeChange::encode(std::byte* p) const {
  const unsigned bits = static_cast<unsigned>(mode) | (send_half ? kSendHalf : 0);
  store_be(p, static_cast<uint32_t>(bits << 28));
}

}  // namespace weft::sdp
