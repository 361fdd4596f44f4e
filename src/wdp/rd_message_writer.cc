#include "wdp/rd_message_writer.h"

#include <algorithm>

namespace weft::wdp {

using wire::Opcode;
using wire::WdpClass;
using wire::WdpData;

std::byte* RdMessageWriter::write(const RdMessage& m, ClientId client, uint64_t request) {
  Msn& msn = next_of(m);
  const Csn csn = sender_.next_csn();
  SentDatagram& d = sender_.append(WdpData::kSize + size_t{m.length}, client, request);
  WdpData{.wdp_class = WdpClass::rd,
          .flags = {.immediate = m.immediate.has_value()},
          .didx = m.didx,
          .sidx = m.sidx,
          .psn = csn,
          .msn = msn,
          .mlen = m.length,
          .last = true,
          .opcode = m.solicited ? Opcode::send_se : Opcode::send,
          .stride = static_cast<uint16_t>(std::max<uint32_t>(m.length, 1)),
          .imm_or_read = m.immediate.value_or(0),
          .to = TaggedOffset{uint64_t{m.q_key.value()} << 32 | m.number}}
      .encode(d.bytes.get());
  msn = next(msn);
  return d.bytes.get() + WdpData::kSize;
}

void RdMessageWriter::take_back(const RdMessage& m) {
  sender_.take_back();
  Msn& msn = next_of(m);
  msn = Msn{msn.value() - 1};
}

std::byte* RdMessageWriter::write(WdpData& segment, bool first, size_t most) {
  Msn& msn = next_of(segment);
  if (first) segment.msn = msn;
  segment.wdp_class = WdpClass::rd;
  segment.psn = sender_.next_csn();
  const size_t size = WdpData::kSize + size_t{segment.payload_size()};
  std::byte* const at = sender_.append_shared(size, most);
  segment.encode(at);
  if (first) msn = next(msn);
  return at + WdpData::kSize;
}

void RdMessageWriter::take_back(const WdpData& segment, bool first) {
  sender_.take_back_shared(WdpData::kSize + size_t{segment.payload_size()});
  if (first) next_of(segment) = segment.msn;
}

}  // namespace weft::wdp
