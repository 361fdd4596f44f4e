#include "ddp/segment.h"

#include <algorithm>

#include "wire/fpdu.h"

namespace weft::ddp {

void Segment::read(Bytes start, size_t ulpdu_size) {
  const std::byte* p = start.data();
  control = wire::Control::parse(p);
  ulpdu = static_cast<uint16_t>(std::min(ulpdu_size, wire::kMaxUlpdu));
  payload = static_cast<uint32_t>(ulpdu_size - wire::ddp_header_size(control.tagged));
  if (control.tagged) {
    std::memcpy(header.data(), p, wire::TaggedHeader::kSize);
    const auto h = wire::TaggedHeader::parse(p);
    stag = h.stag;
    to = h.to;
  } else {
    std::memcpy(header.data(), p, wire::UntaggedHeader::kSize);
    const auto h = wire::UntaggedHeader::parse(p);
    ulp_word = h.ulp_word;
    qn = h.qn;
    msn = h.msn;
    mo = h.mo;
  }
}

}  // namespace weft::ddp
