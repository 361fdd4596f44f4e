// One SDP connection without a queue pair: messages go in, messages and what to tell the user come
// out (spec/sdp). It never calls the operating system; the owner holds one lock around all calls.
//
// The owner sends what next_control() gives whenever it may, and Data or a SrcAvail when allowed;
// it copies nothing here, for payload stays in the owner's buffers.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "base/result.h"
#include "sdp/core/credits.h"
#include "sdp/core/sink.h"
#include "sdp/core/source.h"
#include "sdp/wire/bsdh.h"

namespace weft::sdp {

// Why a peer cannot be talked to any longer.
enum class Violation : uint8_t {
  length,      // a message is shorter than its headers, or Len says otherwise
  identifier,  // no such message, or one that has no place here
  number,      // MSeq or MSeqAck
  mode,        // a change that is not allowed, or a message that its mode does not have
  advert,      // about a buffer that there is not, or of more bytes than it has
  after_end,   // data behind a DisConn
};
const char* text(Violation violation);

class Connection {
 public:
  struct Limits {
    uint16_t own_bufs = 0;
    uint16_t peer_bufs = 0;
    uint32_t own_receive_size = 0;
    uint32_t peer_receive_size = 0;
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
  bool data_may_go() const;
  uint32_t max_payload() const { return max_message_ - Bsdh::kSize; }
  void send_data(std::byte* header, uint32_t payload, uint8_t flags);

  // Read ZCopy, as the source. A SrcAvail carries the first byte of its buffer.
  bool may_advertise() const;
  Message send_src_avail(const SrcAvail& buffer, std::byte first);
  void cancel_src_avail();
  std::optional<Source::Outcome> take_outcome() { return source_.take_outcome(); }
  bool advertising() const { return !source_.may_send_data(); }
  uint32_t advertised_and_read() const { return source_.read(); }

  // Read ZCopy, as the sink.
  const Sink& sink() const { return sink_; }
  Sink::Piece start_read(uint32_t most) { return sink_.start_read(most); }
  void finish_read(uint32_t bytes);
  void refuse_src_avail();

  // The user sends nothing more: DisConn goes when everything else has gone, which the owner says.
  void end_sending() { ending_ = true; }
  void everything_is_sent() { drained_ = true; }
  bool sent_end() const { return sent_end_; }
  bool got_end() const { return got_end_; }
  // The connection is to be reset: AbortConn goes before all other messages. A peer for which there
  // is no credit is told by the end of the queue pair.
  void abort() { abort_ = true; }
  // Whether the peer's user has read all that was sent, as far as its messages tell. What it reads
  // and does not answer counts as unread.
  bool peer_has_read_all() const { return credits_.peer_has_taken_all(); }

 private:
  Result<Incoming, Violation> dispatch(const Bsdh& header, Bytes extended, Bytes payload);
  Message control(MessageId mid, uint32_t length = 0);

  Credits credits_;
  Source source_;
  Sink sink_;
  uint32_t own_receive_size_;
  uint32_t max_message_;
  // Messages that wait for a credit, in the order in which they go.
  uint32_t bytes_read_ = 0;  // RdmaRdCompl
  bool send_sm_ = false;
  bool cancel_ = false;               // SrcAvailCancel
  bool receive_size_answer_ = false;  // ChRcvBufAck
  bool suspended_ = false;            // SuspCommAck
  bool ending_ = false;               // DisConn
  bool drained_ = false;
  bool sent_end_ = false;
  bool got_end_ = false;
  bool abort_ = false;
  bool greeting_ = false;
};

}  // namespace weft::sdp
