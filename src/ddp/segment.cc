#include "ddp/segment.h"

#include <algorithm>

namespace weft::ddp {

Segment Segment::parse(Bytes start, size_t ulpdu) {
  Segment s;
  s.control = wire::Control::parse(start.data());
  const size_t size = wire::ddp_header_size(s.control.tagged);
  std::copy_n(start.begin(), size, s.header.begin());
  s.ulpdu = static_cast<uint16_t>(ulpdu);
  s.payload = static_cast<uint32_t>(ulpdu - size);
  if (s.control.tagged) {
    const auto h = wire::TaggedHeader::parse(start.data());
    s.stag = h.stag;
    s.to = h.to;
  } else {
    const auto h = wire::UntaggedHeader::parse(start.data());
    s.ulp_word = h.ulp_word;
    s.qn = h.qn;
    s.msn = h.msn;
    s.mo = h.mo;
  }
  return s;
}

}  // namespace weft::ddp
