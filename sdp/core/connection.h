// One SDP connection without a queue pair: messages go in, messages and what to tell the user come
// out (spec/sdp). It never calls the operating system; the owner holds one lock around all calls.
//
// The owner sends what next_control() gives whenever it may, and Data or a SrcAvail when allowed;
// it copies nothing here, for payload stays in the owner's buffers.
//
// Here are the headers, the credits and what one half connection asks of the other; each half's own
// rules are in SendingHalf and ReceivingHalf.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "base/result.h"
#include "sdp/core/credits.h"
#include "sdp/core/receiving_half.h"
#include "sdp/core/sending_half.h"
#include "sdp/core/violation.h"
#include "sdp/wire/bsdh.h"

namespace weft::sdp {

class Connection {
 public:
  struct Limits {
    uint16_t own_bufs = 0;
    uint16_t peer_bufs = 0;
    uint32_t own_receive_size = 0;
    uint32_t peer_receive_size = 0;
    // Buffers that each side lets the other advertise at a time.
    uint8_t own_max_adverts = 1;
    uint8_t peer_max_adverts = 1;
  };
  explicit Connection(const Limits& limits);

  // What a message is to the user. `payload` lies inside of the message.
  struct Incoming {
    Bytes payload;
    bool urgent = false;  // the last byte of it is
    bool aborted = false;
  };
  // The receive that held the message is the owner's until posted().
  Result<Incoming, Violation> on_message(Bytes message);
  void posted() { credits_.post(); }

  // A message that has no payload, ready to send, or nothing for now.
  using Control = std::array<std::byte, Bsdh::kSize + SinkAvail::kSize>;
  struct Message {
    Control bytes{};
    uint32_t length = 0;
  };
  std::optional<Message> next_control();

  // The active side has shown its user the connection: the peer is told by a message, behind which
  // it may show its own (spec/sdp 3.4).
  void greet() { greeting_ = true; }
  // Whether the peer has said anything since the start.
  bool heard() const { return credits_.last_taken() > 0; }

  // Messages that the peer would take now.
  uint32_t credits() const { return credits_.usable(); }

  // Data. `payload` is at most max_payload(); the header is Bsdh::kSize bytes in front of it.
  bool data_may_go() const { return sending_.may_send_data() && credits_.data_may_go(); }
  uint32_t max_payload() const { return max_message_ - Bsdh::kSize; }
  void send_data(std::byte* header, uint32_t payload, uint8_t flags);

  // Modes. The sending half changes as soon as nothing is advertised any more. False: there is no
  // such change.
  Mode send_mode() const { return sending_.source().mode(); }
  Mode receive_mode() const { return receiving_.sink().mode(); }
  bool change_send_mode(Mode mode) { return sending_.change_mode(mode); }
  // Asks the peer, once, to change its sending half to Pipelined. It does not have to.
  void ask_for_pipelined();

  // Read ZCopy, as the source. In Combined mode a SrcAvail carries the first byte of its buffer.
  bool may_advertise() const;
  Message send_src_avail(const SrcAvail& buffer, std::byte first);
  void cancel_src_avail() { sending_.cancel(); }
  std::optional<Source::Outcome> take_outcome() { return sending_.take_outcome(); }
  bool advertising() const { return sending_.advertising(); }
  uint32_t advertised_and_read() const { return sending_.source().read(); }

  // Read ZCopy, as the sink.
  const Sink& sink() const { return receiving_.sink(); }
  Sink::Piece start_read(uint32_t most) { return receiving_.start_read(most); }
  void finish_read(uint32_t bytes);
  void refuse_src_avail() { receiving_.refuse(); }

  // Write ZCopy, as the source: the peer's oldest buffer is written to before anything else is
  // posted. Then next_control() says so.
  bool may_write() const { return sending_.may_write(); }
  WriteSource::Piece start_write(uint32_t most) { return sending_.start_write(most); }

  // Write ZCopy, as the sink: the peer may write to the buffer until it has an outcome, which is
  // how many bytes it has written.
  bool may_send_sink_avail() const { return receiving_.may_advertise() && credits_.data_may_go(); }
  Message send_sink_avail(uint32_t length, uint32_t stag, uint64_t to);
  void cancel_sink_avail() { receiving_.cancel(); }
  bool offering() const { return receiving_.advertising(); }
  std::optional<uint32_t> take_written() { return receiving_.take_written(); }

  // The user sends nothing more: DisConn goes when everything else has gone, which the owner says.
  void end_sending() { ending_ = true; }
  void everything_is_sent() { drained_ = true; }
  bool sent_end() const { return sending_.sent_end(); }
  bool got_end() const { return receiving_.got_end(); }
  // The connection is to be reset: AbortConn goes before all other messages. A peer for which there
  // is no credit is told by the end of the queue pair.
  void abort() { abort_ = true; }
  // Whether the peer's user has read all that was sent, as far as its messages tell. What it reads
  // and does not answer counts as unread.
  bool peer_has_read_all() const { return credits_.peer_has_taken_all(); }
  // Whether the peer may have had more to send than has come: it had to wait for credits, or
  // advertises what this side has not read.
  bool peer_may_have_more() const { return sink().advertised() || !credits_.peer_may_send_data(); }

 private:
  Result<Incoming, Violation> dispatch(const Bsdh& header, Bytes extended, Bytes payload);
  Result<Incoming, Violation> on_data(const Bsdh& header, Bytes payload);
  Result<Incoming, Violation> on_src_avail(Bytes extended, Bytes payload);
  Result<Incoming, Violation> on_sink_avail(const Bsdh& header, Bytes extended, Bytes payload);
  void on_src_avail_cancel();
  bool on_mode_change(Bytes extended);
  Message control(MessageId mid, uint32_t length = 0);
  Message control(const Owed& owed);

  Credits credits_;
  SendingHalf sending_;
  ReceivingHalf receiving_;
  uint32_t own_receive_size_;
  uint32_t max_message_;
  // Messages that wait for a credit and are of neither half.
  bool abort_ = false;
  bool ask_pipelined_ = false;  // REQ_PIPE
  bool asked_pipelined_ = false;
  bool receive_size_answer_ = false;  // ChRcvBufAck
  bool suspended_ = false;            // SuspCommAck
  bool ending_ = false;               // DisConn
  bool drained_ = false;
  bool greeting_ = false;
};

}  // namespace weft::sdp
