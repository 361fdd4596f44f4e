#include "sdp/core/connection.h"

#include <algorithm>
#include <utility>

namespace weft::sdp {

const char* text(Violation violation) {
  switch (violation) {
    case Violation::length:
      return "a message is not as long as it says";
    case Violation::identifier:
      return "a message has no place here";
    case Violation::number:
      return "a message has a wrong number";
    case Violation::mode:
      return "a message is not allowed in the mode of its half connection";
    case Violation::advert:
      return "a message speaks of a buffer that is not advertised";
    case Violation::after_end:
      return "data came behind the end of the data";
  }
  return "";
}

Connection::Connection(const Limits& limits)
    : credits_(limits.own_bufs, limits.peer_bufs),
      own_receive_size_(limits.own_receive_size),
      max_message_(limits.peer_receive_size) {}

Result<Connection::Incoming, Violation> Connection::on_message(Bytes message) {
  if (message.size() < Bsdh::kSize) return fail(Violation::length);
  const auto header = Bsdh::parse(message.data());
  if (!header) return fail(Violation::identifier);
  const size_t headers = Bsdh::kSize + extended_header_size(header->mid);
  const bool may_carry = header->mid == MessageId::data || header->mid == MessageId::src_avail;
  if (header->length != message.size() || message.size() < headers ||
      (message.size() > headers && !may_carry)) {
    return fail(Violation::length);
  }
  if (!credits_.take(*header)) return fail(Violation::number);
  return dispatch(*header, message.subspan(Bsdh::kSize, headers - Bsdh::kSize),
                  message.subspan(headers));
}

Result<Connection::Incoming, Violation> Connection::dispatch(const Bsdh& header, Bytes extended,
                                                             Bytes payload) {
  Incoming in;
  const auto payload_length = static_cast<uint32_t>(payload.size());
  switch (header.mid) {
    case MessageId::data:
      if (!payload.empty() && got_end_) return fail(Violation::after_end);
      if (!sink_.on_data(payload_length)) return fail(Violation::mode);
      in.payload = payload;
      in.urgent = !payload.empty() && (header.flags & Bsdh::kOobPresent) != 0;
      return in;
    case MessageId::src_avail: {
      if (got_end_) return fail(Violation::after_end);
      if (!sink_.on_src_avail(SrcAvail::parse(extended.data()), payload_length)) {
        return fail(Violation::mode);
      }
      in.payload = payload.first(Sink::counted(payload_length));
      // Two that wait for each other would wait for ever (spec/sdp 6, 5).
      cancel_src_avail();
      return in;
    }
    case MessageId::rdma_rd_compl:
      if (!source_.on_read(LengthHeader::parse(extended.data()).length)) {
        return fail(Violation::advert);
      }
      return in;
    case MessageId::send_sm:
      if (!source_.on_send_sm()) return fail(Violation::advert);
      cancel_ = false;
      return in;
    case MessageId::src_avail_cancel:
      switch (sink_.on_cancel()) {
        case Sink::Cancel::nothing:
          break;
        case Sink::Cancel::drop:
          send_sm_ = true;
          break;
        case Sink::Cancel::wait:
          credits_.hold_acknowledgement();
          break;
      }
      return in;
    case MessageId::mode_change: {
      const auto change = ModeChange::parse(extended.data());
      const bool allowed = change && (change->send_half ? source_.on_mode_change(change->mode)
                                                        : sink_.on_mode_change(change->mode));
      if (!allowed) return fail(Violation::mode);
      return in;
    }
    case MessageId::dis_conn:
      if (got_end_) return fail(Violation::after_end);
      got_end_ = true;
      return in;
    case MessageId::abort_conn:
      in.aborted = true;
      return in;
    case MessageId::ch_rcv_buf:
      // This side's receives stay as they are, which is an answer that the peer must take.
      receive_size_answer_ = true;
      return in;
    case MessageId::susp_comm:
      suspended_ = true;
      return in;
    // Never asked for by this side.
    case MessageId::ch_rcv_buf_ack:
    case MessageId::susp_comm_ack:
    case MessageId::sink_cancel_ack:
    case MessageId::rdma_wr_compl:
    // Write ZCopy is not there (spec/sdp 7).
    case MessageId::sink_avail:
    case MessageId::sink_avail_cancel:
    // Belong to the start.
    case MessageId::hello:
    case MessageId::hello_ack:
      break;
  }
  return fail(Violation::identifier);
}

Connection::Message Connection::control(MessageId mid, uint32_t length) {
  Message m;
  m.length = Bsdh::kSize + extended_header_size(mid);
  Bsdh header{.mid = mid, .length = m.length};
  credits_.send(header);
  header.encode(m.bytes.data());
  if (m.length > Bsdh::kSize) LengthHeader{length}.encode(m.bytes.data() + Bsdh::kSize);
  return m;
}

std::optional<Connection::Message> Connection::next_control() {
  if (!credits_.control_may_go()) return std::nullopt;
  if (abort_) {
    abort_ = false;
    return control(MessageId::abort_conn);
  }
  if (bytes_read_ > 0) return control(MessageId::rdma_rd_compl, std::exchange(bytes_read_, 0));
  if (send_sm_) {
    send_sm_ = false;
    return control(MessageId::send_sm);
  }
  if (cancel_) {
    cancel_ = false;
    if (advertising()) return control(MessageId::src_avail_cancel);
  }
  if (receive_size_answer_) {
    receive_size_answer_ = false;
    return control(MessageId::ch_rcv_buf_ack, own_receive_size_);
  }
  if (suspended_) {
    suspended_ = false;
    return control(MessageId::susp_comm_ack);
  }
  if (ending_ && drained_ && !sent_end_ && !advertising()) {
    sent_end_ = true;
    return control(MessageId::dis_conn);
  }
  if (credits_.news() || greeting_) {
    greeting_ = false;
    return control(MessageId::data);
  }
  return std::nullopt;
}

bool Connection::data_may_go() const {
  return !sent_end_ && source_.may_send_data() && credits_.data_may_go();
}

void Connection::send_data(std::byte* header, uint32_t payload, uint8_t flags) {
  Bsdh h{.mid = MessageId::data, .flags = flags, .length = Bsdh::kSize + payload};
  credits_.send(h);
  h.encode(header);
}

// A side that holds its peer's buffer advertises none (spec/sdp 6, 5).
bool Connection::may_advertise() const {
  return data_may_go() && source_.may_advertise() && !sink_.advertised();
}

Connection::Message Connection::send_src_avail(const SrcAvail& buffer, std::byte first) {
  Message m;
  m.length = Bsdh::kSize + SrcAvail::kSize + 1;
  Bsdh header{.mid = MessageId::src_avail, .length = m.length};
  credits_.send(header);
  header.encode(m.bytes.data());
  buffer.encode(m.bytes.data() + Bsdh::kSize);
  m.bytes[Bsdh::kSize + SrcAvail::kSize] = first;
  source_.advertise(buffer.length);
  return m;
}

void Connection::cancel_src_avail() {
  if (source_.cancel()) cancel_ = true;
}

void Connection::finish_read(uint32_t bytes) {
  const Sink::Answer answer = sink_.finish_read(bytes);
  bytes_read_ += answer.bytes;
  if (answer.drop) send_sm_ = true;
  if (!sink_.reading()) credits_.release_acknowledgement();
}

void Connection::refuse_src_avail() {
  if (!sink_.advertised() || sink_.reading()) return;
  sink_.drop();
  send_sm_ = true;
}

}  // namespace weft::sdp
