#include "wdp/rd_message_writer.h"

#include <algorithm>

namespace weft::wdp {

using wire::Opcode;
using wire::WdpClass;
using wire::WdpData;

std::byte* RdMessageWriter::write(const RdMessage& m, ClientId client, uint64_t request) {
  const Csn csn = sender_.next_csn();
  return encode(m, csn, sender_.append(size_of(m), client, request).bytes.get());
}

std::byte* RdMessageWriter::write_shared(const RdMessage& m, ClientId client, uint64_t request,
                                         size_t most) {
  const Csn csn = sender_.next_csn();
  return encode(m, csn, sender_.append_shared(size_of(m), most, client, request));
}

std::byte* RdMessageWriter::encode(const RdMessage& m, Csn csn, std::byte* at) {
  Msn& msn = next_of(m);
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
      .encode(at);
  msn = next(msn);
  return at + WdpData::kSize;
}

void RdMessageWriter::take_back(const RdMessage& m) {
  sender_.take_back_shared(size_of(m));
  Msn& msn = next_of(m);
  msn = Msn{msn.value() - 1};
}

std::byte* RdMessageWriter::write(WdpData& segment, bool first, size_t most) {
  Msn& msn = next_of(segment);
  if (first) segment.msn = msn;
  segment.wdp_class = WdpClass::rd;
  segment.psn = sender_.next_csn();
  const size_t size = WdpData::kSize + size_t{segment.payload_size()};
  std::byte* const at = sender_.append_shared(size, most, kNoClient, 0);
  segment.encode(at);
  if (first) msn = next(msn);
  return at + WdpData::kSize;
}

void RdMessageWriter::take_back(const WdpData& segment, bool first) {
  sender_.take_back_shared(WdpData::kSize + size_t{segment.payload_size()});
  if (first) next_of(segment) = segment.msn;
}

}  // namespace weft::wdp
