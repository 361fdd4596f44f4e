// An engine owns a set of connections and runs them (design/15). Its holder runs it: the program's
// own thread inside post_send and poll_cq, else a helper thread that sleeps
// in epoll_wait. Never two at once; nobody waits for another one's I/O.
//
// This is the order of a turn, and what threads may ask of an engine. The parts have a header each:
// Sockets (which are watched, and looked at in a turn), PendingOutput (what waits for company),
// Watch, Helper and Sleepers (who hears the sockets while nobody polls). Design/21 lists them.
//
// Above 400 lines with its source, for a turn and who holds it touch every part.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>

#include "base/result.h"
#include "engine/deadlines.h"
#include "engine/doorbells.h"
#include "engine/helper.h"
#include "engine/hold.h"
#include "engine/pending_output.h"
#include "engine/runtime.h"
#include "engine/sleepers.h"
#include "engine/sockets.h"
#include "engine/watch.h"
#include "port/pi_mutex.h"
#include "port/system_error.h"

namespace weft::engine {

class Engine final : public Runtime {
 public:
  // Makes the epoll sets and starts the helper. Fails with the errno of what could not be had.
  // Throws std::bad_alloc.
  // `block`: where it counts; nullptr: in memory of its own.
  static Result<std::unique_ptr<Engine>, port::SystemError> create(
      unsigned number, stats::EngineBlock* block = nullptr);
  ~Engine() override;

  std::optional<Hold> try_hold();
  // Waits for the holder to finish its turn. For set-up and tear-down, not for the data path.
  Hold hold();

  // Any thread: `handler` has work. Does it now, or leaves it for the holder.
  void ring(EventHandler& handler);
  // The two halves of it: leaves work for the holder; makes sure that there is one.
  void enqueue(EventHandler& handler) { doorbells_.ring(handler); }
  void wake();

  // One visit to everything that is ready. Any thread; does nothing when somebody else is at it.
  // True when something moved.
  enum class Ask : uint8_t { busy, all };  // the connection that is busy alone, or every one
  bool progress(Ask ask = Ask::busy);

  // Sleeps until `ready()` is true, which must come with `fd` turning readable; spins first as long
  // as that has paid. The thread hears the sockets itself, until they have woken it in vain several
  // times. 0, or the errno that ended the wait: EINTR after a signal, EBADF where the program has
  // closed `fd` (or descriptors of the engine).
  int wait(int fd, const std::function<bool()>& ready) { return sleepers_.wait(*this, fd, ready); }

  // Programs that sleep on a descriptor of their own until something is published: while there are
  // any, the helper does not wait for the program to poll. Any thread.
  void expect_sleeper();
  // The calling thread may be about to sleep so.
  void may_sleep() { sleepers_.may_sleep(counters().polls.value()); }
  void forget_sleeper() { sleepers_.forget(); }

  // --- Runtime; holder only
  void add(Token& token, std::unique_ptr<EventHandler> handler, int fd, bool read,
           bool write) override;
  void remove(Token& token, EventHandler& handler) override;
  void forget(Token& token, EventHandler& handler) override;
  void rewatch(Token& token, EventHandler& handler, int fd, bool read, bool write) override;
  void ask_memory(Token& token, EventHandler& handler) override;
  void ask_memory_after(Token& token, EventHandler& handler, const port::PeerWord& word) override;
  void again(Token& token, EventHandler& handler) override;
  void more_to_send(Token& token, EventHandler& handler) override;
  bool gather(Token& token, EventHandler& handler) override;
  void defer(Token& token, EventHandler& handler) override;
  void closes_at(Token& token, Time when) override;

  // Does the calling thread hold it?
  bool held_here() const { return held_.held_here(); }
  // Any thread but the holder: after this no handler refers to user memory that was retired before
  // the call.
  void retire_memory();

  // Sends what was deferred, and waits for connections that close in a moment. Does not wait for a
  // holder that does not let go: the process is about to exit.
  void flush_at_exit();

  // After fork(2), in the child: nothing of this engine may be used again.
  void abandon_in_child();
  // Are its descriptors its own (Watch::intact())? Any thread.
  bool intact() const { return watch_.intact(); }
  // They are not: nothing of this engine may be used again. Ends the helper, and closes nothing.
  void abandon_lost() { helper_.cancel(); }

  // The engine that is held, for those who run on nothing else than an engine.
  static Engine& of(const Token& token) { return static_cast<Engine&>(token.runtime()); }
  unsigned number() const { return number_; }
  static Time clock();
  // Names the calling thread.
  static const void* this_thread() { return Sleepers::this_thread(); }

 private:
  friend class Hold;
  friend class Helper;    // runs turns
  friend class Sleepers;  // sleep on the sockets
  Engine(unsigned number, port::Fd sockets, Watch::Fds fds, stats::EngineBlock* block);

  void update_interest(Token&, EventHandler& handler, bool read, bool write) override {
    sockets_.set().update(handler, read, write);
  }
  void update_deadline(Token&, EventHandler& handler, Time when) override {
    deadlines_.set(handler, when);
  }

  // A turn and its parts.
  bool turn(Token& token);
  bool run_deadlines(Token& token);
  void flush_gathered(Token& token);
  void flush_deferred(Token& token);
  void leave_set(EventHandler& busy);
  bool only_ask_memory(Token& token);
  void stop_hearing(Token& token);

  // Before the engine is let go, or a thread sleeps.
  void serve_doorbells(Token& token);
  void reap();
  void before_release(Token& token);
  void prepare_sleep();
  // The turn goes on: another time.
  static void renew(Token& token);

  static bool waits_for_holder();
  bool is_awaited() const { return waiters_.load(std::memory_order_relaxed) != 0; }

  const unsigned number_;
  port::PiMutex held_;
  std::atomic<int> waiters_{0};  // for set-up and tear-down: pollers stand back
  Doorbells doorbells_;

  // Holder's.
  Sockets sockets_;
  Deadlines deadlines_;
  PendingOutput output_;
  Time exit_not_before_;
  IntrusiveList<EventHandler, HandlersTag> handlers_;
  IntrusiveList<EventHandler, HandlersTag> removed_;  // owned, until the turn is over

  // Who hears the sockets.
  Sleepers sleepers_;
  Watch watch_;
  Helper helper_;
};

}  // namespace weft::engine
