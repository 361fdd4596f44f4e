// One RDMAP stream over one MPA connection: the protocol core of an RC queue pair (RFC 5040;
// docs/spec/mpa.md, rdmap.md). No I/O, no threads, no clock: bytes, time and posted work come in;
// bytes, completions and a deadline go out.
//
//                  +-------------------------- Stream --------------------------+
//   bytes in  ---> | mpa::Receiver -> ddp::SegmentReceiver -> ReceivePath       | ---> receives
//                  |                    requests of the peer:  |  |: Delivery   |
//   bytes out <--- | mpa::FpduWriter <- fill() <- ResponsePath, SendPath        | <--- send queue
//                  +------------------------------------------------------------+
//
//   Opening: which side may speak first. Ending: which side has said FIN or Terminate.
//
// Above 400 lines with its source: the order of what is said, and each way to an end, ask all
// parts.
#pragma once

#include <array>
#include <memory>
#include <optional>

#include "mpa/receiver.h"
#include "rdmap/ending.h"
#include "rdmap/opening.h"
#include "rdmap/receive_path.h"
#include "rdmap/response_path.h"
#include "rdmap/send_path.h"

namespace weft::rdmap {

class Stream {
 public:
  // `seed` makes sink STags hard to guess. The consumer must outlive the stream or call detach().
  Stream(work::Consumer& consumer, const StreamConfig& config, uint32_t seed, Time now);
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // The bytes pass through memory of both ends, and nothing that could change them: both directions
  // go on without CRC, whatever was agreed (spec/same-host 2.2). Before the first FPDU.
  void goes_by_memory() {
    config_.mpa.crc = false;
    config_.by_memory = true;
    receiver_.go_by_memory();
    writer_.go_by_memory();
    send_path_.limit_payload();
    responses_.limit_payload();
    config_.counters.qp->peer.set_carrier(stats::Carrier::memory);
  }
  // The bytes go by datagrams instead of TCP (spec/wdp-rd 7).
  void goes_by_datagrams() {
    engine_counters().streams_by_udp.add();
    config_.counters.qp->peer.set_carrier(stats::Carrier::datagrams);
  }

  // --- bytes in
  // False: leave bytes in the socket for now.
  bool wants_bytes() const;
  // Whole ones, since the stream began.
  uint64_t fpdus_received() const { return receiver_.fpdus(); }
  // The next bytes belong straight in their place (see mpa::Receiver); otherwise hand them to
  // received().
  bool direct() const { return takes_input() && receiver_.direct(); }
  // Bytes of an FPDU from which on that is so, where it came in parts.
  size_t direct_from() const { return receiver_.direct_from(); }
  // Are these places in memory of the program's? The kernel may not reach it (EFAULT), and then the
  // bytes go to received().
  bool in_place() const { return receiver_.in_place(); }
  // Appends where; false when the stream just ended over it.
  bool direct_places(PieceList& places, Time now);
  void direct_received(size_t n, Time now);
  void received(Bytes bytes, Time now);
  void peer_closed(Time now);
  // `unanswered`: the kernel gave up the peer.
  void connection_lost(bool unanswered = false);
  // Memory of the program's that was to be sent is gone, in the middle of an FPDU.
  void source_lost(const void* address);
  // The peer's memory was, that the segment which is just coming in is taken from.
  void peer_source_lost();

  // --- bytes out
  enum class Output : uint8_t {
    none,
    deferrable,  // a Delivered that may wait for company (spec/rdmap 4.3)
    ready,
  };
  Output output();
  // Appends FPDUs to the batch until it is full or there is nothing to say.
  void fill(mpa::TxBatch& batch, Time now);
  // Requests wait, and nobody waits for them: enough is under way that the program will look for
  // completions, or it is in the middle of a `burst` of posts. What waits may gather company.
  bool may_gather(bool burst) const {
    return ending_.state() == Ending::State::open && responses_.empty() &&
           delivery_.due() != Delivery::Due::now && send_path_.may_gather(burst);
  }
  // The kernel has all that fill() wrote.
  void llp_took_all(Time now);

  // --- time
  Time deadline() const;
  void tick(Time now);

  // --- the adapter
  // Receives were posted: messages that waited for one go on.
  void receives_posted(Time now);
  // Orderly close: what is posted by now goes out, then a FIN.
  void close(Time now);
  // No request is begun while they are held; the one in progress is finished (InfiniBand's SQD).
  void hold_requests(bool on) { send_path_.pause(on); }
  // At most so many Reads and atomics are under way, within the ORD.
  void limit_reads(uint16_t most) { send_path_.reads().set_limit(most); }
  // Every request that was begun is complete.
  bool requests_idle() const { return send_path_.idle(); }
  // The peer has said the beginning of an FPDU and not its end.
  bool inside_fpdu() const { return !receiver_.at_boundary(); }
  // Abortive close: a Terminate where the stream is between FPDUs, and out.
  void abort(Time now);
  // The queue pair goes away: what is owed to the peer is said, then a FIN. No request is sent any
  // more.
  void leave(Time now);
  // The consumer goes away; the stream lives on until its Terminate and FIN are out.
  void detach() { consumer_gone_ = true; }
  // What it still does counts there.
  void count_in(stats::QpBlock& block) { config_.counters.qp = &block; }
  std::optional<work::Receive> abandon_receive() { return receive_path_.abandon_receive(); }
  void set_rnr(uint8_t rnr_retry, uint8_t min_rnr_timer) {
    config_.rnr_retry = rnr_retry;
    config_.min_rnr_timer = min_rnr_timer;
  }

  // What the owner of the connection should do once all output is with the kernel.
  using Wish = Ending::Wish;
  Wish wish() const;
  // The process had better not exit before: the peer has to digest what it got. Never when nothing
  // is to be waited for.
  Time settles_at() const {
    const Time fin = ending_.fin_at();
    const Time rtr = rtr_settled() || over() ? Time::never() : opening_.rtr_settles_at();
    return fin.is_never() || rtr.is_never() ? std::min(fin, rtr) : std::max(fin, rtr);
  }
  // shutdown_write was carried out. Nothing is sent any more.
  void write_side_shut(Time now);

  bool ended() const { return !ending_.live(); }
  // Nothing that is still to be sent can arrive.
  bool hopeless() const { return ending_.hopeless(); }
  const mpa::Parameters& parameters() const { return config_.mpa; }
  // The stream fell idle: give back what memory can be had.
  void trim() {
    receiver_.trim();
    receive_path_.trim();
    send_path_.trim();
    responses_.trim();
  }

 private:
  bool takes_input() const { return ending_.live() && !ending_.leaving(); }
  bool over() const { return ended() && !ending_.terminating(); }
  stats::QpCounters& counters() const { return config_.counters.qp->counters; }
  stats::EngineCounters& engine_counters() const { return config_.counters.engine->counters; }
  void after_input(const Verdict& v, Time now);
  void end_silence();
  void count_refusal(wire::TermError error);
  void tell_end(work::StreamEnd::Kind kind, wire::TermError error);
  void finish(work::StreamEnd::Kind kind, wire::TermError error);
  Quote last_segment() const;
  void fail_stream(wire::TermError error, const Quote& about, Time now);
  void terminate(const wire::Terminate& t, work::StreamEnd::Kind kind, Time now);
  void on_terminate(const wire::Terminate& t, Time now);
  void check_own_requests(Time now);
  bool rtr_settled() const { return opening_.rtr_settled() || ending_.peer_fin(); }
  bool owes_delivered() const;
  // The Terminate waits for the RTR to settle, and kicks go on meanwhile.
  bool waking_peer() const { return ending_.terminating() && !rtr_settled(); }
  // What was said before must not be slept over.
  bool owes_kick() const { return !config_.mpa.extension && send_path_.owes_empty_write(); }

  void write_output(mpa::TxBatch& batch, Time now);
  void write_messages(mpa::TxBatch& batch, Time now);
  void write_rtr(mpa::TxBatch& batch);
  bool write_delivered(mpa::TxBatch& batch);
  bool write_response(mpa::TxBatch& batch, Time now);
  void write_terminate(mpa::TxBatch& batch, Time now);

  work::Consumer& consumer_;
  StreamConfig config_;

  Opening opening_;
  Ending ending_;
  Delivery delivery_;
  ResponsePath responses_;
  SendPath send_path_;
  ReceivePath receive_path_;
  ddp::SegmentReceiver segments_;
  mpa::Receiver receiver_;
  mpa::FpduWriter writer_;

  bool consumer_gone_ = false;
  uint32_t responses_in_row_ = 0;
  uint64_t drained_fpdus_ = 0;  // draining: own requests' FPDUs when progress was last seen
  Time receive_wanted_until_ = Time::never();  // plain peer's Send waits for a receive
  std::unique_ptr<wire::Terminate> own_terminate_;
};

}  // namespace weft::rdmap
