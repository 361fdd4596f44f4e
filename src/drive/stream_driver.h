// Moves the bytes of one RDMAP stream between the core and its connection (design/16). Knows
// sizes and readiness, nothing of work requests.
//
// Above 400 lines with its source: receiving, sending and ending ask for each other.
#pragma once

#include <memory>

#include "drive/memory_carrier.h"
#include "drive/post_burst.h"
#include "engine/event_handler.h"
#include "engine/runtime.h"
#include "port/byte_stream.h"
#include "rdmap/stream.h"

namespace weft::drive {

using engine::Token;

// Who stands behind a stream: the queue pair.
class StreamOwner {
 public:
  virtual ~StreamOwner() = default;
  // The driver has finished a visit in which completions may have come up, or the stream may have
  // said that it is ready or over. Where it finds no memory (bad_alloc) it is called again.
  virtual void visited(Token& token) = 0;
  // The connection is closed and the driver about to be deleted.
  virtual void driver_gone(Token& token) = 0;
};

class BatchPool;
class LoopBytes;
class RdBytes;

class StreamDriver final : public engine::EventHandler {
 public:
  StreamDriver(StreamOwner& owner, std::unique_ptr<port::ByteStream> bytes,
               work::Consumer& consumer, const rdmap::StreamConfig& config, uint32_t seed,
               Time now);
  ~StreamDriver() override;

  rdmap::Stream& stream() { return stream_; }
  const port::ByteStream& bytes() const { return *bytes_; }

  // Its bytes go by datagrams, or may: `bytes` of the constructor. Before start().
  void goes_by(RdBytes& bytes);
  // The stream is its own peer's: `bytes` of the constructor. Before start().
  void goes_round(LoopBytes& bytes);
  // Those bytes go by datagrams, and not by TCP after all.
  void by_datagrams() { stream_.goes_by_datagrams(); }

  // Bytes that came behind the start-up frame, and the first output. Call once, after
  // Runtime::add().
  void start(Token& token, Bytes early);
  // Sends, sees to deadlines and wishes, and tells the owner. To be called after anything was done
  // to the stream. With `all`, also what could wait for company goes out.
  void settle(Token& token, bool all = false);
  // Bytes that datagrams have brought, straight from there. False: they are not wanted yet. To be
  // visited afterwards, also where it throws std::bad_alloc, which is for on_no_memory().
  bool take_in(Bytes bytes, Time now) {
    if (gone_ || broken_ || !stream_.wants_bytes()) return false;
    const uint64_t before = stream_.fpdus_received();
    stream_.received(bytes, now);
    large_ = (stream_.fpdus_received() - before) * stream_.direct_from() < bytes.size();
    return true;
  }
  bool takes_large() const { return large_; }
  // The program has posted send requests: sends them, now or together with those that follow.
  void posted(Token& token);
  // A window has been closed, from inside a call into the stream. What the peer reads from its
  // memory is what is there now.
  void window_closed();
  // Nobody is told of anything any more.
  void disown();
  // The owner goes away; the driver stays until its Terminate and FIN are out. Throws
  // std::bad_alloc: then the owner is gone all the same.
  void detach();

  void on_ready(Token& token, bool readable, bool writable) override;
  bool try_receive(Token& token) override;
  // What is in memory is asked without epoll anyway, and datagrams come to their own driver.
  bool tries_receive() const override { return through_socket(); }
  void use_descriptor(Token& token, bool on) override {
    memory_.use_descriptor(token, on, blocked_);
  }
  void on_broken(Token& token) override;
  void on_deadline(Token& token) override;
  void on_doorbell(Token& token) override { settle(token); }
  void on_gathered(Token& token) override { settle(token); }
  void on_idle(Token& token) override;
  void on_memory_retired(Token& token) override;
  void on_no_memory(Token& token) override;
  void abandon_in_child() override { bytes_->close(); }

 private:
  // The bytes are the socket's from send() to receive().
  bool through_socket() const {
    return memory_.bytes() == nullptr && rd_ == nullptr && loop_ == nullptr;
  }
  void settle_now(Token& token, bool all);
  void take_round(Token& token, bool all);
  Time round_at(Token& token) const;
  void break_off(Token& token);
  void send(Token& token, bool all);
  size_t receive(Token& token);
  bool receive_direct(Token& token, size_t& moved, bool& drained);
  void count_received(Token& token, size_t moved) const;
  bool receive_bounced(Token& token, size_t& moved, bool& drained);
  bool take(Token& token, const port::ByteStream::Transfer& t);
  port::ByteStream::Transfer send_batch(Token& token);
  void grant_wish(Token& token);
  void leave_rd(Token& token, bool abort);
  void look_for_acknowledgements(Token& token);

  StreamOwner* owner_;
  const std::unique_ptr<port::ByteStream> bytes_;
  rdmap::Stream stream_;
  MemoryCarrier memory_;
  RdBytes* rd_ = nullptr;      // the bytes, where they go by datagrams, or may yet
  LoopBytes* loop_ = nullptr;  // the bytes, where this side is its own peer
  PostBurst burst_;
  BatchPool* batches_ = nullptr;         // from start() on
  std::unique_ptr<mpa::TxBatch> batch_;  // while it has bytes that the socket would not take
  // When to look whether the peer acknowledges what it was sent; never where all is said of that.
  Time look_at_ = Time::never();
  bool blocked_ = false;  // waiting for the socket to turn writable
  bool large_ = false;    // FPDUs have been large lately: read little into the bounce buffer
  bool tiny_ = true;      // or so small that a whole buffer of them takes long
  bool silence_told_ = false;
  bool unreachable_ = false;  // the kernel could not reach the place of what is next
  bool gone_ = false;
  bool broken_ = false;  // left in the middle for want of memory: nothing of it moves any more
};

}  // namespace weft::drive
