// A stream, the queue pair that it serves and the peer that it hears: what a fuzz target plays
// with. Time stands still unless the target moves it; nothing is random. After every step check()
// holds what a peer must not be able to break.
#pragma once

#include <array>
#include <list>

#include "fuzz/rdmap/area.h"
#include "fuzz/rdmap/listener.h"
#include "rdmap/stream.h"
#include "tests/support/frames.h"
#include "tests/support/host.h"

namespace weft::fuzz {

class Session {
 public:
  explicit Session(const rdmap::StreamConfig& config);

  // --- the program's memory, at addresses that do not depend on the run
  static constexpr uint64_t kAddress = 0x1000;
  enum class Region : uint8_t { open, read_only, write_only, foreign, none };
  Stag stag(Region r) const;
  void deregister(Region r);

  // --- the peer: says something, which waits until it is handed over
  void say(Bytes ulpdu) { say_bytes(test::make_fpdu(ulpdu)); }
  void say_bytes(Bytes bytes);
  // Hands over the first `n` bytes in pieces of `piece`, as StreamDriver does.
  void hand_over(size_t n, size_t piece);
  size_t waiting() const { return peer_.size(); }
  // The next message of the peer has `mask` laid over byte `at` of its ULPDU.
  void damage_next(uint8_t at, uint8_t mask);
  void fin();
  void reset();

  struct Tagged {
    Region region{};
    uint64_t offset = 0;
    size_t size = 0;
    bool last = true;
    bool ack_wanted = false;
  };
  void write(const Tagged& w);
  void send(wire::Opcode op, size_t size, bool last, uint32_t word, bool ack_wanted);
  void read(Region r, uint64_t offset, uint32_t size);
  void atomic(Region r, uint64_t offset, uint8_t code);
  void immediate(bool solicited);
  // Of the oldest request that the stream has made; nothing when there is none.
  void respond(size_t most);
  void terminate(Bytes payload);
  // `less`: than all that the stream has said.
  void delivered(uint64_t less, uint32_t stag);

  // --- the program
  static constexpr size_t kMostReceives = 12;
  void post_receive(size_t size);
  struct Post {
    work::Operation operation{};
    size_t size = 0;
    bool signaled = true;
    bool fence = false;
    bool inlined = false;
    bool bad_key = false;
  };
  void post(const Post& p);
  void close();
  void abort();
  void leave();
  void local_operations_fail() { host_.local_result = work::Status::window_bind; }
  void own_memory_lost() { stream_.source_lost(source_.data()); }
  void set_rnr(uint8_t retry, uint8_t timer) { stream_.set_rnr(retry, timer); }
  void trim() { stream_.trim(); }

  // --- the kernel and the clock
  // Takes at most `most` bytes of what the stream says, and does what it wishes.
  void listen(size_t most = SIZE_MAX);
  void later(Duration d);

  // Everything that must hold now.
  void check();
  // The peer says no more: whatever state the stream is in, it ends within bounded time.
  void finish(bool abortively);

  const rdmap::Stream& stream() const { return stream_; }
  const test::Host& host() const { return host_; }
  const Listener& listener() const { return listener_; }

 private:
  void say_message(test::Buffer ulpdu);
  void let_go();
  void grant_wish();
  void check_memory();
  void check_requests();
  void check_receives();

  struct Registered {
    Area area;
    bool gone = false;
    test::Buffer then;  // what was in it when the peer lost its right to it
  };
  const rdmap::StreamConfig config_;
  test::Host host_;
  Time now_ = Time::from_ns(1'000'000'000);
  rdmap::Stream stream_;
  Listener listener_;
  mpa::TxBatch batch_;

  std::array<Registered, 4> regions_;
  Area source_;               // of Sends and Writes: nobody may write it
  Area sink_;                 // of Reads and Atomics
  std::list<Area> receives_;  // in the order of posting; wr_id counts from 0

  test::Buffer peer_;        // bytes on their way
  size_t said_by_peer_ = 0;  // bytes in all
  uint8_t damage_at_ = 0;
  uint8_t damage_ = 0;
  uint32_t send_msn_ = 1;
  uint32_t send_mo_ = 0;
  uint32_t read_msn_ = 1;
  uint32_t answer_msn_ = 1;
  uint64_t write_at_ = 0;  // bytes of the Write that is being said
  uint64_t heard_ = 0;     // bytes that the stream took

  uint64_t posted_ = 0;
  std::optional<size_t> taken_at_end_;
  bool closing_ = false;
  bool gone_ = false;    // abort() or leave()
  bool ended_ = false;   // stream_ended() came
  bool closed_ = false;  // the socket is
  bool shut_ = false;    // our FIN is out
  bool fin_ = false;     // the peer's is in, or its reset
};

}  // namespace weft::fuzz
