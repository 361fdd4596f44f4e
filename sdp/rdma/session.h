// An SDP connection: the protocol on a queue pair (link.h), the stream of each direction
// (stream_out.h, stream_in.h), and who waits for news of them. What it does by itself, it does in
// process(), which whoever has the lock calls: a thread of the program inside of a call, or whoever
// has taken completions of it.
#pragma once

#include <chrono>
#include <functional>
#include <mutex>
#include <new>

#include "sdp/rdma/completions.h"
#include "sdp/rdma/link.h"
#include "sdp/rdma/locked_member.h"
#include "sdp/rdma/news_waiters.h"
#include "sdp/rdma/stream_in.h"
#include "sdp/rdma/stream_out.h"
#include "sdp/wire/hello.h"

namespace weft::sdp {

class Session final : private LockedMember {
 public:
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
  rdma_cm_id* id() const { return link_.queue_pair().id(); }

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
  void show(const ShownConnection& connection) { link_.show(connection); }
  void relayed() { link_.relayed(); }

  // Streams are used once it is open. What was put into the one out goes with process().
  StreamOut& out() { return out_; }
  const StreamOut& out() const { return out_; }
  StreamIn& in() { return in_; }
  const StreamIn& in() const { return in_; }
  // How many bytes the program lets wait on each side, 0: as many as fit. What waits already stays.
  void limit_buffers(uint32_t to_send, uint32_t received);
  // Memory of the user's, for the adapter. Nothing if it refuses it.
  Verbs<ibv_mr> lend(const std::byte* memory, size_t bytes, int access) const {
    return link_.queue_pair().lend(memory, bytes, access);
  }

  // What has come, and what may go.
  void process();
  // The same, behind a look at the queues. False: another thread was at it, and may have something
  // that it has not handed out.
  bool poll();
  // Waits for that thread.
  void poll_behind_others();
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
  // Whether somebody sleeps until news come.
  void want(bool does) { waiters_.want(does); }
  // The caller goes on to other things (Completions::rest). True: he has processed what was there.
  bool rest();
  // Sleeps until completions were taken, or `most` is over. `holding` is of the lock.
  void sleep(std::unique_lock<Lock>& holding, std::chrono::microseconds most);
  Completions& completions() { return completions_; }
  Completions::Looking looking() { return Completions::Looking{completions_, this}; }

  void greet() { link_.connection().greet(); }
  bool heard() const { return link_.connection().heard() || gone(); }

  // How it broke, as Link has it.
  int error() const { return link_.error(); }
  bool broken() const { return link_.broken(); }
  int take_error() { return link_.take_error(); }
  void leave_error() { link_.leave_error(); }
  int untold_error() const { return link_.untold_error(); }
  void abort() { link_.abort(); }
  // Its queue pair is down.
  bool gone() const { return link_.queue_pair().down(); }
  // Whether completions have to be taken though the user waits for nothing.
  bool busy() const { return !broken() && (out_.busy() || in_.reading()); }
  // Nothing is left to do: both have ended, or it broke.
  bool finished() const { return out_.has_said_all() && (broken() || in_.got_end()); }
  // The adapter says that the connection is down.
  void on_disconnected();

 private:
  bool process_mail() override;
  void before_unlock() override;
  bool put_off_mail() override;
  void give_up();
  void take_mail();
  void complete(const Completed& completed);
  void on_receive(uint8_t buffer, uint32_t bytes);
  void settle_end();

  Completions& completions_;
  NewsWaiters waiters_;
  Link link_{*this};
  StreamOut out_{link_};
  StreamIn in_{link_};
  bool news_ = false;  // that on_news was not told of
  bool lacked_memory_ = false;
  bool abandoned_ = false;
  bool settled_ = false;  // what the end of the queue pair means
};

}  // namespace weft::sdp
