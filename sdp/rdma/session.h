// An SDP connection on a queue pair: buffers, receives, completions. What it does by itself, it
// does in process(), which whoever has the lock calls: a thread of the program inside of a call, or
// whoever has taken completions of it.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <utility>

#include "sdp/core/connection.h"
#include "sdp/rdma/completions.h"
#include "sdp/rdma/locked_member.h"
#include "sdp/rdma/news_waiters.h"
#include "sdp/rdma/queue_pair.h"
#include "sdp/rdma/receive_buffers.h"
#include "sdp/rdma/receive_queue.h"
#include "sdp/rdma/resources.h"
#include "sdp/rdma/send_buffers.h"
#include "sdp/rdma/sink_reads.h"
#include "sdp/rdma/urgent_mark.h"
#include "sdp/stat/shown.h"
#include "sdp/wire/hello.h"

namespace weft::sdp {

// Above 400 lines with its source: each completion moves buffers, credits and waiters.
class Session final : private LockedMember {
 public:
  // With its header: the payload is whole, so that a send of 64 KB is two messages, and not a third
  // one of what the headers left over.
  static constexpr uint32_t kMessage = (32 << 10) + Bsdh::kSize;

  explicit Session(Completions& completions) : completions_(completions), waiters_(completions) {}
  // Gives up its queue pair. What has been received can still be read. The loop's thread, without
  // the lock.
  void retire();
  ~Session() override { retire(); }

  // The start, on the loop's thread. Makes a queue pair for `id`, which is the session's from then
  // on, and posts receives, for `receive_bytes` as limit_buffers() has them. False with errno.
  bool create(rdma_cm_id* id, ibv_pd* pd, uint32_t receive_bytes);
  // What it says of itself; addresses are the caller's to fill in.
  Hello hello() const;
  HelloAck hello_ack() const;
  void open(uint16_t peer_bufs, uint32_t peer_receive_size, uint8_t peer_max_adverts);
  rdma_cm_id* id() const { return queue_pair_.id(); }

  // Called with the lock, once, when the peer breaks the protocol. Set before open().
  std::function<void(Violation)> on_violation;
  // Called without the lock, on any thread: somebody is to take the lock and let go of it soon.
  std::function<void()> on_more_mail;

  // Everything below: whoever holds this.
  using LockedMember::Lock;
  using LockedMember::lock;

  // Called with the lock, on any thread, before somebody lets go of it who has processed
  // completions, unless he says told() behind that.
  std::function<void()> on_news;
  void told() { news_ = false; }

  // From now on `weft stat` shows it.
  void show(const ShownConnection& connection) { shown_ = Shown{connection}; }
  void relayed() { shown_.relayed(); }

  // How many bytes the program lets wait on each side, 0: as many as fit. What waits already stays.
  void limit_buffers(uint32_t to_send, uint32_t received);

  // What has come, and what may go.
  void process();
  // Takes a step that another one relies on: where there is no memory for it the session is
  // aborted, so that neither side goes on behind half of it.
  template <class Step>
  void step(Step step) {
    try {
      step();
    } catch (const std::bad_alloc&) {
      give_up();
    }
  }
  // It was aborted for that.
  bool lacked_memory() const { return lacked_memory_; }
  // The same where nobody came to have it: the fabric closes it when the peer has heard of it.
  void abandon() {
    abandoned_ = true;
    give_up();
  }
  bool abandoned() const { return abandoned_; }
  // The same, behind a look at the queues. False: another thread was at it, and may have something
  // that it has not handed out.
  bool poll();
  // Waits for that thread.
  void poll_behind_others();
  // Whether somebody sleeps until news come.
  void want(bool does) { waiters_.want(does); }
  // The caller goes on to other things (Completions::rest). True: he has processed what was there.
  bool rest();
  // Sleeps until completions were taken, or `most` is over. `holding` is of the lock.
  void sleep(std::unique_lock<Lock>& holding, std::chrono::microseconds most);
  Completions& completions() { return completions_; }
  Completions::Looking looking() { return Completions::Looking{completions_, this}; }

  void greet() { connection_->greet(); }
  bool heard() const { return connection_->heard() || gone(); }

  // The stream out. No room: nothing can be taken now.
  MutableBytes room() { return writable() ? send_.room() : MutableBytes{}; }
  void filled(uint32_t bytes) { send_.filled(bytes); }
  // What was filled last ends with an urgent byte.
  void mark_urgent() { send_.mark_urgent(); }
  bool writable() const { return !broken() && !ending_; }
  uint32_t unsent() const { return send_.waiting_bytes(); }
  uint32_t unacknowledged() const { return send_.bytes(); }
  void end_sending() { ending_ = true; }
  bool ending() const { return ending_; }

  // Read ZCopy, as the source: `bytes` at `from` are read by the peer where they lie, and stay as
  // they are until there is an outcome, or the connection broke. False: they have to be copied.
  bool may_advertise() const;
  bool advertise(const std::byte* from, uint32_t bytes, uint32_t rkey);
  bool advertising() const { return connection_->advertising(); }
  // Of what is advertised: how much the peer says that it has read.
  uint32_t advertised_and_read() const { return connection_->advertised_and_read(); }
  void cancel_advertising();
  // How many of the bytes the peer has read, once. The rest is to be copied.
  std::optional<uint32_t> take_outcome();

  // Write ZCopy, as the source (session_writes.cc): the peer's program waits with a buffer of its
  // own. Bytes at `from` go there; the memory is the adapter's while writing(). How many; 0: none.
  bool may_write() const;
  uint32_t write(const std::byte* from, uint32_t bytes, uint32_t lkey);
  bool writing() const { return queue_pair_.writes() > 0 && !broken(); }
  // Whether the peer may offer buffers at all.
  bool pipelined() const { return connection_->send_mode() == Mode::pipelined; }

  // Write ZCopy, as the sink: the peer may write to `bytes` at `to`, which are its until there is
  // an outcome, or the connection broke. False: not now.
  static constexpr uint32_t kLeastOffer = kMessage - Bsdh::kSize;
  bool may_offer() const;
  bool offer(std::byte* to, uint32_t bytes, uint32_t rkey);
  void cancel_offer();
  // How many bytes the peer has written, once.
  std::optional<uint32_t> take_written();
  // The peer is asked, once, for the mode in which buffers may be offered.
  void ask_for_offers();

  // The stream in. Ended: nothing more will come.
  ReceiveQueue& received() { return received_; }
  void take(size_t bytes);
  // Read ZCopy, as the sink: bytes that the peer advertises, behind all that was received.
  uint32_t offered() const;
  bool readable() const { return !received_.empty() || offered() > 0; }
  // The same without an urgent byte that a read leaves out: what poll(2) says.
  bool shows_data() const { return urgent_.readable(received_.bytes() + offered()) > 0; }
  // They are read to the user's memory, or staged: then they are received. One Read at a time; the
  // memory is the adapter's while reading(). How many bytes it will bring; 0 if there is none.
  uint32_t read(std::byte* to, uint32_t most, uint32_t lkey) { return read({to, most, lkey}); }
  uint32_t stage() { return offered() > 0 ? read(reads_.stage(queue_pair_.pd())) : 0; }
  bool reading() const { return reads_.under_way() && !broken(); }
  // What the last Read has brought to the user's memory, once.
  uint32_t take_arrived() { return reads_.take_arrived(); }
  // Whether they are staged by themselves as they come, for a user who does not wait for that.
  void set_stages_by_itself(bool does) { stages_by_itself_ = does; }

  // Memory of the user's, for the adapter. Nothing if it refuses it.
  Verbs<ibv_mr> lend(const std::byte* memory, size_t bytes, int access) const;
  // Where the urgent byte stands among what was received.
  UrgentMark& urgent() { return urgent_; }
  // The user has shut both halves: data that still comes resets the connection, as with TCP.
  void refuse_data() { refuses_data_ = true; }
  bool ended() const;
  bool got_end() const { return connection_->got_end(); }
  bool at_end() const { return received_.empty() && ended(); }

  // errno of a connection that broke, or 0: ECONNRESET, or EPIPE where the peer had sent its end.
  int error() const { return error_; }
  bool broken() const { return gone() || error_ != 0; }
  // The same, once; then 0.
  int take_error() { return std::exchange(untold_, 0); }
  // As if nobody had taken it.
  void leave_error() { untold_ = error_; }
  int untold_error() const { return untold_; }
  // The same for who reads: behind the peer's end there is none.
  int take_read_error();
  // Whether completions have to be taken though the user waits for nothing.
  bool busy() const;
  // All that it was given to send is with the peer, its end too if it has one; or it broke.
  bool has_sent_all() const;
  // The same, and it has an end.
  bool has_said_all() const;
  // Nothing is left to do: both have ended, or it broke.
  bool finished() const;
  bool gone() const { return queue_pair_.down(); }
  // Ends at once; what was not sent or read is lost.
  void abort();
  // The adapter says that the connection is down.
  void on_disconnected();

 private:
  bool process_mail() override;
  void before_unlock() override;
  bool put_off_mail() override;
  void give_up();

  bool post_receives();
  void release(uint32_t buffer);
  void complete(const Completed& completed);
  void on_receive(uint8_t buffer, uint32_t bytes);
  void on_read();
  uint32_t read(const SinkReads::Target& target);
  void send_what_may_go();
  void count_message();
  bool post_control(const Connection::Message& message);
  void post_data();
  void take_mail();
  void settle_end();
  void fail(int error);

  Completions& completions_;
  QueuePair queue_pair_{*this};
  NewsWaiters waiters_;
  ReceiveBuffers receives_;
  SendBuffers send_;
  SinkReads reads_;
  ReceiveQueue received_;
  std::optional<Connection> connection_;
  Shown shown_;
  bool news_ = false;  // that on_news was not told of
  bool stages_by_itself_ = false;
  UrgentMark urgent_;
  bool refuses_data_ = false;
  bool ending_ = false;
  bool lacked_memory_ = false;
  bool abandoned_ = false;
  bool settled_ = false;  // what the end of the queue pair means
  int error_ = 0;
  int untold_ = 0;
};

}  // namespace weft::sdp
