#include "rdmap/response_path.h"

#include <algorithm>

#include "ddp/segment.h"
#include "work/faults.h"

namespace weft::rdmap {

using wire::Opcode;
using wire::TaggedHeader;
using wire::UntaggedHeader;

// The RTR read has its place even where no other read is allowed (spec/mpa 2.4).
ResponsePath::ResponsePath(work::Consumer& consumer, const StreamConfig& config)
    : consumer_(consumer),
      config_(config),
      payload_(max_payload(config, TaggedHeader::kSize)),
      requests_(std::max<size_t>(config.mpa.ird, config.mpa.rtr == mpa::Rtr::read ? 1 : 0)) {}

ResponsePath::Written ResponsePath::write(mpa::FpduWriter& writer, mpa::TxBatch& batch) {
  InboundRead& answer = requests_.front();
  return answer.atomic ? write_atomic(answer, writer, batch) : write_read(answer, writer, batch);
}

ResponsePath::Written ResponsePath::write_atomic(const InboundRead& answer, mpa::FpduWriter& writer,
                                                 mpa::TxBatch& batch) {
  constexpr size_t kSize = UntaggedHeader::kSize + wire::AtomicResponse::kSize;
  if (!writer.fits(batch, kSize, 0, 0)) return Written::no_room;
  std::byte header[kSize];
  UntaggedHeader{.control = {.last = true, .opcode = Opcode::atomic_response},
                 .qn = kAtomicResponseQueue,
                 .msn = atomic_msn_}
      .encode(header);
  answer.response.encode(header + UntaggedHeader::kSize);
  writer.write(batch, header);
  atomic_msn_ = next(atomic_msn_);
  requests_.pop_front();
  return Written::yes;
}

ResponsePath::Written ResponsePath::write_read(InboundRead& answer, mpa::FpduWriter& writer,
                                               mpa::TxBatch& batch) {
  const wire::ReadRequest& r = answer.request;
  // As in RequestWriter::write_payload().
  const uint32_t to_end = answer.sent == 0 ? payload_ : payload_ - answer.sent % payload_;
  uint32_t n = std::min(r.size - answer.sent, to_end);
  if (!writer.fits(batch, TaggedHeader::kSize, n, 1)) return Written::no_room;
  PieceList pieces;
  if (n > 0) {
    // Looked up for every FPDU: the region may have been deregistered since the request was
    // accepted.
    const auto p = consumer_.memory().remote(r.source_stag, r.source_to + answer.sent, n,
                                             work::Access::remote_read);
    if (!p.ok()) return refuse(p.error());
    n = writer.part(batch, TaggedHeader::kSize, *p, n);
    pieces.add(*p, n);
  }
  const bool last = answer.sent + n == r.size;
  std::byte header[TaggedHeader::kSize];
  TaggedHeader{.control = {.tagged = true, .last = last, .opcode = Opcode::read_response},
               .stag = r.sink_stag,
               .to = r.sink_to + answer.sent}
      .encode(header);
  if (!writer.write(batch, header, pieces.pieces())) return refuse(work::MemoryFault::gone);
  config_.counters.qp->counters.sent(stats::Kind::read, n);
  answer.sent += n;
  in_message_ = !last;
  if (last) requests_.pop_front();
  return Written::yes;
}

ResponsePath::Written ResponsePath::refuse(work::MemoryFault fault) {
  refused_ = read_fault(fault);
  return Written::refused;
}

wire::Terminate ResponsePath::refusal() const {
  const InboundRead& read = requests_.front();
  wire::Terminate t{.error = refused_, .has_segment_length = true};
  t.segment_length = static_cast<uint16_t>(read.headers.size());
  t.ddp_header_size = UntaggedHeader::kSize;
  t.rdmap_header_size = wire::ReadRequest::kSize;
  std::copy_n(read.headers.begin(), UntaggedHeader::kSize, t.ddp_header.begin());
  std::copy_n(read.headers.begin() + UntaggedHeader::kSize, wire::ReadRequest::kSize,
              t.rdmap_header.begin());
  return t;
}

}  // namespace weft::rdmap
