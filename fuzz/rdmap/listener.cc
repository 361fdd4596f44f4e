#include "fuzz/rdmap/listener.h"

namespace weft::fuzz {

using test::Frame;
using wire::Opcode;

namespace {

// RFC 5041 section 4.2: the shortest FPDU that carries a message.
constexpr uint64_t kLeastFpdu = wire::fpdu_size(wire::TaggedHeader::kSize);

}  // namespace

void Listener::listen(Bytes bytes, uint64_t heard) {
  if (!config_.mpa.send_markers) rest_.insert(rest_.end(), bytes.begin(), bytes.end());
  for (size_t i = 0; config_.mpa.send_markers && i < bytes.size(); ++i) {
    if (position_++ % wire::kMarkerSpacing >= wire::kMarkerSize) rest_.push_back(bytes[i]);
  }
  Bytes stream{rest_};
  while (stream.size() >= wire::kFpduLengthSize) {
    const size_t ulpdu = load_be<uint16_t>(stream.data());
    const size_t size = wire::fpdu_size(ulpdu);
    if (stream.size() < size) break;
    const test::SplitFpdu parts = test::split_fpdu(stream.first(size));
    // Markers count for the CRC, and they are gone.
    if (!config_.mpa.crc) {
      FUZZ_CHECK(parts.crc_field == 0);
    } else if (!config_.mpa.send_markers) {
      FUZZ_CHECK(parts.crc_field == parts.crc);
    }
    for (const std::byte b : parts.pad) FUZZ_CHECK(b == std::byte{0});
    frame(test::parse_ulpdu(parts.ulpdu), heard);
    stream = stream.subspan(size);
  }
  rest_.assign(stream.begin(), stream.end());
}

void Listener::frame(const Frame& f, uint64_t heard) {
  FUZZ_CHECK(!terminated_);  // RFC 5040 section 7: nothing follows a Terminate
  ++frames_;
  if (f.ulpdu.empty()) {
    // RTR of kind B: the Initiator's first FPDU and no other.
    FUZZ_CHECK(config_.initiator && config_.mpa.rtr == mpa::Rtr::fpdu && frames_ == 1);
    return;
  }
  const wire::Control& c = f.control;
  FUZZ_CHECK(c.ddp_version == wire::kDdpVersion && c.rdmap_version == wire::kRdmapVersion);
  FUZZ_CHECK(c.opcode <= Opcode::delivered && c.tagged == wire::is_tagged(c.opcode));
  if (!config_.mpa.extension) FUZZ_CHECK(!wire::needs_extension(c.opcode) && !c.ack_wanted);
  if (c.ack_wanted) FUZZ_CHECK(c.last && wire::is_request(c.opcode));
  if (c.opcode == Opcode::delivered) {
    judge_delivered(f, heard);
    return;
  }
  if (c.tagged) {
    judge_tagged(f);
  } else {
    judge_untagged(f);
  }
  if (c.last && wire::is_request(c.opcode)) ++messages_;
  open_ = c.last ? std::nullopt : std::optional{f};
}

void Listener::judge_delivered(const Frame& f, uint64_t heard) {
  FUZZ_CHECK(f.control.last && f.payload.empty());
  FUZZ_CHECK(f.to >= delivered_);
  FUZZ_CHECK(f.to <= heard / kLeastFpdu);  // no more messages than fit into what it heard
  delivered_ = f.to;
}

void Listener::judge_tagged(const Frame& f) {
  if (!open_) return;
  FUZZ_CHECK(f.op() == open_->op() && f.stag == open_->stag);
  FUZZ_CHECK(f.to == open_->to + open_->payload.size());
}

void Listener::judge_untagged(const Frame& f) {
  if (f.op() == Opcode::terminate) {
    terminated_ = true;
    FUZZ_CHECK(f.qn == 2 && f.msn == 1 && f.mo == 0 && f.control.last);
    return;
  }
  if (open_) {
    FUZZ_CHECK(f.op() == open_->op() && f.mo == open_->mo + open_->payload.size());
  } else {
    FUZZ_CHECK(f.mo == 0);
  }
  FUZZ_CHECK(f.qn < msn_.size() && f.msn == msn_[f.qn]);
  if (f.control.last) ++msn_[f.qn];
  if (f.op() == Opcode::read_request) {
    FUZZ_CHECK(f.qn == 1 && f.payload.size() == wire::ReadRequest::kSize);
    const auto r = wire::ReadRequest::parse(f.payload.data());
    requests.push_back({.sink = r.sink_stag, .to = r.sink_to.value(), .left = r.size});
  } else if (f.op() == Opcode::atomic_request) {
    FUZZ_CHECK(f.qn == 1 && f.payload.size() == wire::AtomicRequest::kSize);
    requests.push_back(
        {.atomic = true, .id = wire::AtomicRequest::parse(f.payload.data()).request_id});
  }
}

}  // namespace weft::fuzz
