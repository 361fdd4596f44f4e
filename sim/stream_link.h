// A TCP-like connection between two ends, A and B: bytes arrive in order and exactly once, some
// time later, in pieces that have nothing to do with how they were written.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/random.h"
#include "sim/scheduler.h"
#include "sim/stream_options.h"
#include "sim/stream_pipe.h"

namespace weft::sim {

// One end, in the manner of a non-blocking socket. Belongs to its StreamLink.
class StreamEnd {
 public:
  // Takes as many bytes as there is room for and returns their number; 0 after shutdown_write() or
  // a reset. When that was less than offered, on_event is called as soon as there is room again.
  size_t write(std::span<const Bytes> pieces);
  // How much write() could take now.
  size_t writable() const;

  size_t readable() const;
  // Fills the pieces in order and returns the number of bytes; 0 when there are none now.
  size_t read(std::span<const MutableBytes> pieces);
  // All that the peer wrote before its FIN has arrived. It may still be readable: the stream is at
  // its end when fin_received() and readable() is 0.
  bool fin_received() const;
  // By the peer, by this end, or by a cut. Bytes that arrived before a foreign reset stay readable,
  // as on Linux.
  bool was_reset() const { return reset_; }

  // FIN behind the bytes written so far.
  void shutdown_write();
  // RST: what arrived and was not read is gone; what is on the way may be overtaken and lost.
  void reset();

  // Called from the scheduler, never from within a function of the link, when bytes, a FIN or a
  // reset arrived or there is room to write again. May use both ends.
  void on_event(std::function<void()> f) { on_event_ = std::move(f); }

 private:
  friend class StreamLink;
  void notify() {
    if (on_event_ && !own_reset_) on_event_();
  }

  StreamPipe* out_ = nullptr;
  StreamPipe* in_ = nullptr;
  std::function<void()> send_reset_;
  std::function<void()> on_event_;
  bool reset_ = false;
  bool own_reset_ = false;
};

// All randomness comes from `seed`: the same calls at the same virtual times make the same run.
class StreamLink {
 public:
  StreamLink(Scheduler& scheduler, uint64_t seed, const StreamOptions& options = {});
  StreamLink(const StreamLink&) = delete;
  StreamLink& operator=(const StreamLink&) = delete;

  StreamEnd& a() { return a_; }
  StreamEnd& b() { return b_; }

  // Faults of the bytes that `from` (an end of this link) writes; offsets count its bytes from 0.
  // XORs the byte at `offset` with `mask` when it arrives; one that has arrived stays as it is.
  void corrupt(const StreamEnd& from, uint64_t offset, std::byte mask = std::byte{0x01});
  // Exactly `bytes` bytes arrive, then the cut; if more than that have arrived, it comes at once.
  void cut_after(const StreamEnd& from, uint64_t bytes, Cut kind);
  // Both directions at that time; what is on the way is lost.
  void cut_at(Time when, Cut kind);

 private:
  StreamPipe::Callbacks callbacks(StreamPipe& pipe, StreamEnd& writer, StreamEnd& reader);
  StreamPipe& from(const StreamEnd& end) { return &end == &a_ ? a_to_b_ : b_to_a_; }
  void reset_arrives(StreamEnd& end);
  void send_reset(Alarm& arrival);
  void cut_reached(StreamPipe& pipe, StreamEnd& reader, Cut kind);
  void cut_now(Cut kind);

  Scheduler& scheduler_;
  SeededRandom random_;
  const StreamOptions options_;
  StreamEnd a_;
  StreamEnd b_;
  StreamPipe a_to_b_;
  StreamPipe b_to_a_;
  Alarm reset_of_a_;
  Alarm reset_of_b_;
  std::vector<std::unique_ptr<Alarm>> timed_cuts_;
  bool silent_ = false;
};

}  // namespace weft::sim
