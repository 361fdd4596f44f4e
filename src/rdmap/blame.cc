#include "rdmap/blame.h"

#include "wire/rdmap_messages.h"

namespace weft::rdmap {

using wire::Layer;

work::Status status_of(wire::TermError error) {
  namespace term = wire::term;
  if (error == term::kUntaggedNoBuffer) return work::Status::rnr_retry_exceeded;
  if (error == term::kUntaggedTooLong) return work::Status::remote_invalid_request;
  switch (error.layer) {
    case Layer::rdmap:
      if (error.etype == 1) return work::Status::remote_access;
      if (error.etype == 2) return work::Status::remote_operation;
      return work::Status::general;
    case Layer::ddp:
      return error.etype == 1 ? work::Status::remote_access : work::Status::fatal;
    case Layer::llp:
      break;
  }
  return work::Status::fatal;
}

namespace {

// RFC 7306 has no error of its own for an address that is no multiple of 8; a responder of
// InfiniBand calls it, and more requests than were agreed, an invalid request.
work::Status status_of_atomic(wire::TermError error) {
  return error == wire::term::kOperationCatastrophicStream ? work::Status::remote_invalid_request
                                                           : status_of(error);
}

// Which of the outstanding reads and atomics a Terminate with the header `header` means. A sink is
// one read's alone, and right in whatever way the peer came to its quotation. The MSN is not: siw
// puts the read's size there, which may well be the MSN of another (spec/errors 1.2). It answers in
// order, and so it means the oldest.
const OutboundRead* read_meant(const wire::Terminate& t, const wire::UntaggedHeader& header,
                               OutboundReads& reads) {
  if (t.rdmap_header_size == wire::ReadRequest::kSize) {
    const auto request = wire::ReadRequest::parse(t.rdmap_header.data());
    if (const OutboundRead* read = reads.find(request.sink_stag)) return read;
  }
  if (t.layout == wire::Terminate::Layout::rfc) {
    if (const OutboundRead* read = reads.find(header.msn)) return read;
  }
  return reads.oldest();
}

}  // namespace

void apply_blame(const wire::Terminate& t, bool extension, SendPath& send_path) {
  const work::Status status = status_of(t.error);
  if (t.ddp_header_size == wire::UntaggedHeader::kSize) {
    const auto header = wire::UntaggedHeader::parse(t.ddp_header.data());
    if (header.qn == kReadRequestQueue) {
      const OutboundRead* read = read_meant(t, header, send_path.reads());
      if (read != nullptr && read->request != OutboundRead::kNoRequest) {
        send_path.blame(read->request, read->atomic ? status_of_atomic(t.error) : status);
        return;
      }
    }
  }
  // A weft peer has said what it covers: the first request behind that is meant (spec/rdmap 4.4).
  if (extension) {
    send_path.blame_waiting(status);
  } else {
    send_path.blame_oldest(status);
  }
}

}  // namespace weft::rdmap
