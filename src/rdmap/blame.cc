#include "rdmap/blame.h"

namespace weft::rdmap {

using wire::Layer;

Status status_of(wire::TermError error) {
  namespace term = wire::term;
  if (error == term::kUntaggedNoBuffer) return Status::rnr_retry_exceeded;
  if (error == term::kUntaggedTooLong) return Status::remote_invalid_request;
  switch (error.layer) {
    case Layer::rdmap:
      if (error.etype == 1) return Status::remote_access;
      if (error.etype == 2) return Status::remote_operation;
      return Status::general;
    case Layer::ddp:
      return error.etype == 1 ? Status::remote_access : Status::fatal;
    case Layer::llp:
      break;
  }
  return Status::fatal;
}

void apply_blame(const wire::Terminate& t, bool extension, SendPath& send_path) {
  const Status status = status_of(t.error);
  if (t.ddp_header_size == wire::UntaggedHeader::kSize) {
    const auto header = wire::UntaggedHeader::parse(t.ddp_header.data());
    if (header.qn == kReadRequestQueue) {
      // siw puts the read's size where the MSN belongs (wire.md 5.2); then it is the oldest read.
      const OutboundRead* read = send_path.reads().find(header.msn);
      if (read == nullptr) read = send_path.reads().oldest();
      if (read != nullptr && read->request != OutboundRead::kNoRequest) {
        send_path.blame(read->request, status);
        return;
      }
    }
  }
  // A weft peer has said what it covers: the first request behind that is meant (wire.md 4.10).
  if (extension) {
    send_path.blame_waiting(status);
  } else {
    send_path.blame_oldest(status);
  }
}

}  // namespace weft::rdmap
