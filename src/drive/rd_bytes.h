// The bytes of an RC connection by datagrams instead of TCP (spec/wdp-rd 7). A start through a
// channel leaves nothing but the stream. One by TCP brings the connection that the two ends have
// agreed on it by, which is closed as soon as the peer is heard:
//
//   Initiator:  says on TCP that it comes ── ready ──► stream ── peer closes TCP ──► alone
//   Responder:  waits on TCP for that ── says "ready" ──► first message, closes TCP ──► alone
//                   └─ the Initiator does not come: TCP carries the stream, as any other
//
// Above 400 lines with its source: one carrier, and the ways in which two ends come to it.
#pragma once

#include <array>
#include <memory>

#include "drive/datagram_driver.h"
#include "drive/peer_wait.h"
#include "port/byte_stream.h"
#include "wdp/rd_stream.h"

namespace weft::drive {

class StreamDriver;

// Of the TCP connection, what its own class knows.
struct RdRoute {
  Gid from;              // this end's address
  uint32_t scope = 0;    // its interface, where the address is link-local
  uint32_t segment = 0;  // bytes of payload in a segment of TCP
};

// Engine holder only. On the engine of its socket.
class RdBytes final : public port::ByteStream, public DatagramSender, private wdp::RdStreamOwner {
 public:
  RdBytes(DatagramDriver& driver, std::unique_ptr<port::ByteStream> tcp, const RdRoute& route,
          const wire::RdOffers& offers);
  // Without TCP, for the start passes through a channel (spec/wdp-rd 7.5). The Initiator's, whose
  // stream has begun there; the Responder's, which begins by this.
  RdBytes(DatagramDriver& driver, std::unique_ptr<wdp::RdStream> stream);
  RdBytes(DatagramDriver& driver, wdp::RdChannel& channel, const wire::RdOffers& offers);
  // The Responder of rdma_cm (spec/wdp-rd 7.6): waits for the Initiator, who comes by that path and
  // may have `given_up` since.
  RdBytes(DatagramDriver& driver, const wdp::Path& path, const wire::RdOffers& offers,
          GivenUp given_up);
  RdBytes(const RdBytes&) = delete;
  RdBytes& operator=(const RdBytes&) = delete;
  // One that no driver has begun to use, for want of memory, leaves the channels by itself.
  ~RdBytes() override {
    if (user_ == nullptr) stream_->forsake();
  }

  // --- for the driver of the stream
  // It is the one that is called when there is something to be done.
  void begin(StreamDriver& user);
  // Can anything be sent, also an end? Not before the carrier is decided, and there is a
  // channel.
  bool decided() const { return by_tcp() || (state_->ready && stream_->has_channel()); }
  // It goes by TCP after all: the byte stream is as any other.
  bool by_tcp() const { return state_->carrier == Carrier::tcp; }
  // After each visit: what was said goes out, a channel is opened, a TCP connection is closed.
  void visited(Token& token);
  // The peer hears of it. Where it throws std::bad_alloc it is to be called again.
  void leave(Token& token, bool abort);
  void trim() { stream_->trim(); }
  wdp::RdStream& stream() { return *stream_; }
  // Bytes of the stream that a datagram between two such ends carries.
  static size_t most_between(const wire::RdOffer& a, const wire::RdOffer& b);
  // What a segment of TCP on this path would carry at most. The stream has begun.
  uint32_t segment() const;
  // Has receive() anything to tell: bytes, or the end that came with the last of them?
  bool readable() const {
    return stream_->readable() > 0 || stream_->peer_ended() || stream_->error() != 0;
  }

  // --- port::ByteStream
  Transfer send(std::span<const IoVec> pieces) const override;
  Transfer receive(std::span<const IoVec> pieces) const override;
  void shut_write() const override;
  void reset() override;
  void close() override;
  // The channel asks by itself.
  Unacknowledged unacknowledged() const override;
  port::Address peer() const override;
  int fd() const override { return has_tcp() ? state_->start->tcp->fd() : -1; }

 private:
  enum class Carrier : uint8_t { undecided, datagrams, tcp };
  // By TCP.
  struct Start {
    std::unique_ptr<port::ByteStream> tcp;
    port::Address peer;
    RdRoute route;
    std::array<std::byte, 1 + wire::RdOffer::kSize> answer{};  // of the Initiator's
    size_t answered = 0;                                       // bytes of it that are there
  };
  // By a channel and rdma_cm.
  struct Wait {
    GivenUp given_up;
    PeerWait* of_engine = nullptr;
  };
  // There are many of it: a multiple of 16 bytes less 8, as malloc has them.
  struct State {
    std::unique_ptr<Start> start;  // none: it is over, or was in a channel
    Carrier carrier = Carrier::undecided;
    bool ready : 1 = false;  // the peer takes messages, and this side does
    bool over : 1 = false;   // the TCP connection is not needed any more
    bool changed = false;    // the user is to be called
    bool no_memory = false;  // for the user, in the middle of what came
    int error = 0;
    std::unique_ptr<Wait> wait;  // for the Initiator
  };

  bool has_tcp() const { return state_->start != nullptr && state_->start->tcp->fd() >= 0; }
  static State in_channel();
  // DatagramSender
  void settled(Token& token) override;
  void on_no_memory(Token& token) override;
  // wdp::RdStreamOwner
  void stream_changed() override;
  bool bytes_came(Bytes bytes, Time now) noexcept override;
  void listen() const;
  void hear(std::byte said) const;
  void take_answer(Bytes said) const;
  bool say(wire::RdWord word) const;
  void begin_stream(const wire::RdOffer& peer) const;
  void wait_for_peer(Token& token);
  void wait_no_longer(Token& token);

  DatagramDriver& driver_;
  const bool initiator_;
  const std::unique_ptr<State> state_;
  const std::unique_ptr<wdp::RdStream> stream_;
  StreamDriver* user_ = nullptr;
};

}  // namespace weft::drive
