// A connection within one host: a TCP connection, and memory that both ends share beside it
// (spec/same-host). The bytes pass through the memory; the TCP connection wakes a side that sleeps,
// and its end is the end.
#pragma once

#include <optional>

#include "port/byte_stream.h"
#include "port/tcp_stream.h"
#include "shared/segment.h"
#include "stats/blocks.h"

namespace weft::shared {

class Stream final : public port::ByteStream, public port::SharedBytes {
 public:
  enum class Role : uint8_t { initiator, responder };
  // `refer_from`: bytes of a piece from which on it may be sent by reference, or
  // kNeverPull. `early`: what has come behind the start-up; the stream takes what is
  // not the ULP's off its front.
  Stream(port::TcpStream tcp, Segment segment, Role role, size_t refer_from, Bytes& early,
         stats::EngineCounters& counters);

  port::SharedBytes* shared() override { return this; }
  // Refers to nothing.
  Transfer send(std::span<const IoVec> pieces) const override;
  Transfer receive(std::span<const IoVec> pieces) const override;
  void shut_write() const override { tcp_.shut_write(); }
  void reset() override;
  void close() override;
  Unacknowledged unacknowledged() const override;
  void keep_alive(const Keepalive& keepalive) const override { tcp_.keep_alive(keepalive); }
  port::Address peer() const override { return tcp_.peer(); }
  int fd() const override { return tcp_.fd(); }

  // --- port::SharedBytes
  Carrier carrier() const override { return carrier_; }
  Transfer send(std::span<const IoVec> pieces, Bytes own) override;
  bool has_input() const override;
  port::PeerWord input_word() const override;
  bool has_room() override { return rings_ != nullptr && rings_->out.has_room(); }
  void hear() override;
  bool ended() const override { return end_ != End::none; }
  bool await_input() override;
  bool await_room() override;
  void ignore() override;
  const void* detach() override;
  void end_for_loss() override;
  bool copies_wanted() const override { return rings_ != nullptr && rings_->out.copies_wanted(); }
  bool refers_now() const override { return rings_ != nullptr && rings_->out.refers_now(); }

 private:
  enum class End : uint8_t { none, finished, failed };
  struct Rings {
    RingWriter out;
    RingReader in;
  };
  void decide(wire::HostCarrier said);
  void begin();
  void ended_by(const Transfer& t);
  // True: the peer was woken up.
  bool publish() const;
  void wake_peer() const;

  port::TcpStream tcp_;
  std::optional<Segment> segment_;
  const size_t refer_from_;
  stats::EngineCounters& counters_;
  Carrier carrier_ = Carrier::undecided;
  std::unique_ptr<Rings> rings_;
  End end_ = End::none;
  int error_ = 0;
};

}  // namespace weft::shared
