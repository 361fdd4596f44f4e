#include "sdp/core/connection.h"

#include <utility>

namespace weft::sdp {

Connection::Connection(const Limits& limits)
    : credits_(limits.own_bufs, limits.peer_bufs),
      sending_(limits.own_max_adverts, limits.peer_receive_size - Bsdh::kSize),
      receiving_(limits.peer_max_adverts),
      own_receive_size_(limits.own_receive_size),
      max_message_(limits.peer_receive_size) {}

Result<Connection::Incoming, Violation> Connection::on_message(Bytes message) {
  if (message.size() < Bsdh::kSize) return fail(Violation::length);
  const auto header = Bsdh::parse(message.data());
  if (!header) return fail(Violation::identifier);
  const size_t headers = Bsdh::kSize + extended_header_size(header->mid);
  const bool may_carry = header->mid == MessageId::data || header->mid == MessageId::src_avail ||
                         header->mid == MessageId::sink_avail;
  if (header->length != message.size() || message.size() < headers ||
      (message.size() > headers && !may_carry)) {
    return fail(Violation::length);
  }
  if (!credits_.take(*header)) return fail(Violation::number);
  const bool asks = (header->flags & Bsdh::kRequestPipelined) != 0;
  if (asks && !sent_end()) (void)change_send_mode(Mode::pipelined);
  return dispatch(*header, message.subspan(Bsdh::kSize, headers - Bsdh::kSize),
                  message.subspan(headers));
}

Result<Connection::Incoming, Violation> Connection::dispatch(const Bsdh& header, Bytes extended,
                                                             Bytes payload) {
  Incoming in;
  switch (header.mid) {
    case MessageId::data:
      return on_data(header, payload);
    case MessageId::src_avail:
      return on_src_avail(extended, payload);
    case MessageId::sink_avail:
      return on_sink_avail(header, extended, payload);
    case MessageId::rdma_rd_compl:
      if (!sending_.on_read(LengthHeader::parse(extended.data()).length)) {
        return fail(Violation::advert);
      }
      return in;
    case MessageId::send_sm:
      if (!sending_.on_send_sm()) return fail(Violation::advert);
      return in;
    case MessageId::src_avail_cancel:
      on_src_avail_cancel();
      return in;
    case MessageId::sink_avail_cancel:
      sending_.on_sink_avail_cancel();
      return in;
    case MessageId::rdma_wr_compl:
      if (!receiving_.on_written(LengthHeader::parse(extended.data()).length)) {
        return fail(Violation::advert);
      }
      return in;
    case MessageId::sink_cancel_ack:
      if (!receiving_.on_sink_cancel_ack()) return fail(Violation::advert);
      return in;
    case MessageId::mode_change:
      if (!on_mode_change(extended)) return fail(Violation::mode);
      return in;
    case MessageId::dis_conn:
      if (!receiving_.on_end()) return fail(Violation::after_end);
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
    // Belong to the start.
    case MessageId::hello:
    case MessageId::hello_ack:
      break;
  }
  return fail(Violation::identifier);
}

Result<Connection::Incoming, Violation> Connection::on_data(const Bsdh& header, Bytes payload) {
  const auto taken = receiving_.on_data(payload);
  if (!taken.ok()) return fail(taken.error());
  Incoming in;
  in.payload = *taken;
  in.urgent = !payload.empty() && (header.flags & Bsdh::kOobPresent) != 0;
  return in;
}

Result<Connection::Incoming, Violation> Connection::on_src_avail(Bytes extended, Bytes payload) {
  const auto taken = receiving_.on_src_avail(SrcAvail::parse(extended.data()), payload);
  if (!taken.ok()) return fail(taken.error());
  // Two that wait for each other would wait for ever (spec/sdp 6, 5).
  if (receiving_.sink().advertised()) sending_.cancel();
  Incoming in;
  in.payload = *taken;
  return in;
}

// The payload, if there is one, belongs to the other half connection.
Result<Connection::Incoming, Violation> Connection::on_sink_avail(const Bsdh& header,
                                                                  Bytes extended, Bytes payload) {
  auto in = on_data(header, payload);
  if (!in.ok()) return in;
  const auto buffer = SinkAvail::parse(extended.data());
  if (const auto violation = sending_.on_sink_avail(buffer, header.mseq_ack)) {
    return fail(*violation);
  }
  return in;
}

void Connection::on_src_avail_cancel() {
  if (receiving_.on_src_avail_cancel() == Sink::Cancel::wait) credits_.hold_acknowledgement();
}

bool Connection::on_mode_change(Bytes extended) {
  const auto change = ModeChange::parse(extended.data());
  return change && (change->send_half ? sending_.on_mode_change(change->mode)
                                      : receiving_.on_mode_change(change->mode));
}

Connection::Message Connection::control(MessageId mid, uint32_t length) {
  Message m;
  m.length = Bsdh::kSize + extended_header_size(mid);
  Bsdh header{.mid = mid, .length = m.length};
  if (std::exchange(ask_pipelined_, false)) header.flags |= Bsdh::kRequestPipelined;
  credits_.send(header);
  header.encode(m.bytes.data());
  if (m.length > Bsdh::kSize) LengthHeader{length}.encode(m.bytes.data() + Bsdh::kSize);
  return m;
}

Connection::Message Connection::control(const Owed& owed) {
  Message m = control(owed.mid, owed.length);
  if (owed.mid == MessageId::mode_change) {
    ModeChange{.send_half = false, .mode = owed.mode}.encode(m.bytes.data() + Bsdh::kSize);
  }
  return m;
}

std::optional<Connection::Message> Connection::next_control() {
  if (!credits_.control_may_go()) return std::nullopt;
  if (std::exchange(abort_, false)) return control(MessageId::abort_conn);
  if (const auto owed = receiving_.next()) return control(*owed);
  if (const auto owed = sending_.next(credits_)) return control(*owed);
  if (std::exchange(receive_size_answer_, false)) {
    return control(MessageId::ch_rcv_buf_ack, own_receive_size_);
  }
  if (std::exchange(suspended_, false)) return control(MessageId::susp_comm_ack);
  if (ending_ && drained_ && sending_.end_may_go()) {
    sending_.end();
    return control(MessageId::dis_conn);
  }
  if (credits_.news() || greeting_ || ask_pipelined_) {
    greeting_ = false;
    return control(MessageId::data);
  }
  return std::nullopt;
}

void Connection::send_data(std::byte* header, uint32_t payload, uint8_t flags) {
  Bsdh h{.mid = MessageId::data, .flags = flags, .length = Bsdh::kSize + payload};
  if (payload > 0) sending_.on_data_sent();
  credits_.send(h);
  h.encode(header);
}

// A side that holds its peer's buffer advertises none (spec/sdp 6, 5).
bool Connection::may_advertise() const {
  return sending_.may_advertise() && !sink().advertised() && credits_.data_may_go();
}

Connection::Message Connection::send_src_avail(const SrcAvail& buffer, std::byte first) {
  Message m;
  const bool with_byte = send_mode() != Mode::pipelined;
  m.length = Bsdh::kSize + SrcAvail::kSize + (with_byte ? 1 : 0);
  Bsdh header{.mid = MessageId::src_avail, .length = m.length};
  credits_.send(header);
  header.encode(m.bytes.data());
  buffer.encode(m.bytes.data() + Bsdh::kSize);
  if (with_byte) m.bytes[Bsdh::kSize + SrcAvail::kSize] = first;
  sending_.advertise(buffer.length, header.mseq);
  return m;
}

void Connection::finish_read(uint32_t bytes) {
  receiving_.finish_read(bytes);
  if (!sink().reading()) credits_.release_acknowledgement();
}

void Connection::ask_for_pipelined() {
  if (receive_mode() == Mode::combined && !std::exchange(asked_pipelined_, true)) {
    ask_pipelined_ = true;
  }
}

Connection::Message Connection::send_sink_avail(uint32_t length, uint32_t stag, uint64_t to) {
  Message m = control(MessageId::sink_avail);
  SinkAvail{length, stag, to, receiving_.advertise(length)}.encode(m.bytes.data() + Bsdh::kSize);
  return m;
}

}  // namespace weft::sdp
