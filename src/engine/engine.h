// An engine owns a set of connections and runs them (design/15). Whoever holds it
// runs it: the program's own thread inside post_send and poll_cq, else a helper thread that sleeps
// in epoll_wait. Never two at once; nobody waits for another one's I/O.
//
// At any time when a socket may turn readable, at least one of these is true, so that it is heard:
//   (a) a program thread sleeps on the engine's epoll set (wait()),
//   (b) the helper is armed on it,
//   (c) the watch timer runs: the program polls, and the helper looks after it when it stops; it
//       is deaf then, so that packets do not wake it,
//   (d) the helper rests, for some microseconds, and arms itself then.
// Only under (c) may a busy socket be out of the epoll set.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <vector>

#include "engine/deadlines.h"
#include "engine/doorbells.h"
#include "engine/event_handler.h"
#include "engine/helper_policy.h"
#include "engine/helper_schedule.h"
#include "engine/helper_thread.h"
#include "engine/local_data.h"
#include "engine/wake_up_time.h"
#include "port/fd.h"
#include "port/pi_mutex.h"
#include "port/system_error.h"
#include "stats/blocks.h"

namespace weft::engine {

class Engine;

// Holding the engine, as a scope. What other threads left at the door is done before it is let go.
class Hold {
 public:
  Hold(Hold&& other) noexcept
      : token_(other.token_.engine_), held_(std::exchange(other.held_, false)) {
    token_.now_ = other.token_.now_;
  }
  Hold& operator=(Hold&&) = delete;
  ~Hold();
  Token& token() { return token_; }

 private:
  friend class Engine;
  explicit Hold(Engine& e) : token_(e) {}
  Token token_;
  bool held_ = true;
};

// The descriptors of an engine.
struct EngineFds {
  port::Fd inner;  // epoll set of the handlers
  port::Fd outer;  // epoll set that the helper sleeps on: inner, timer, wake
  port::Fd timer;
  port::Fd wake;
};
Result<Ok, port::SystemError> make_engine_fds(EngineFds& fds);

class Engine {
 public:
  // Makes the epoll sets and starts the helper. Fails with the errno of what could not be had.
  // Throws std::bad_alloc.
  // `block`: where it counts; nullptr: in memory of its own.
  static Result<std::unique_ptr<Engine>, port::SystemError> create(
      unsigned number, stats::EngineBlock* block = nullptr);
  ~Engine();

  std::optional<Hold> try_hold();
  // Waits for the holder to finish its turn. For set-up and tear-down, not for the data path.
  Hold hold();

  // Any thread: `handler` has work. Does it now, or leaves it for the holder.
  void ring(EventHandler& handler);
  // The two halves of it: leaves work for the holder; makes sure that there is one.
  void leave(EventHandler& handler) { doorbells_.ring(handler); }
  void knock();

  // One visit to everything that is ready. Any thread; does nothing when somebody else is at it.
  // True when something moved.
  enum class Ask : uint8_t { busy, all };  // the connection that is busy alone, or every one
  bool progress(Ask ask = Ask::busy);

  // Sleeps until `ready()` is true, which must come with `fd` turning readable; spins first as long
  // as that has paid. The thread hears the sockets itself, until they have woken it in vain several
  // times. 0, or the errno that ended the wait: EINTR after a signal, EBADF where the program has
  // closed `fd` (or descriptors of the engine), ETIMEDOUT after `timeout` (negative: none).
  int wait(int fd, const std::function<bool()>& ready, Duration timeout);

  // Programs that sleep on a descriptor of their own until something is published: while there are
  // any, the helper does not wait for the program to poll. Any thread.
  void expect_sleeper();
  // The calling thread may be about to sleep so.
  void may_sleep();
  void forget_sleeper() { expected_sleepers_.fetch_sub(1, std::memory_order_relaxed); }

  // --- holder only
  // Takes over the handler and watches `fd` for it.
  void add(Token& token, std::unique_ptr<EventHandler> handler, int fd, bool read, bool write);
  // Stops watching. The handler is deleted when the turn is over.
  void remove(Token& token, EventHandler& handler);
  // Lets go of a handler that somebody else owns: no bell, deadline or descriptor of it is left
  // behind.
  void forget(Token& token, EventHandler& handler);
  // Watches another descriptor for the handler; -1: none.
  void rewatch(Token& token, EventHandler& handler, int fd, bool read, bool write);
  // The handler used up its byte budget on the way out, and waits for epoll to say that there is
  // room.
  void more_to_send(Token& token, EventHandler& handler) {
    want_write(token, handler, true);
    ask_all();
  }
  // A connection that the program is done with will be closed then; the process does not exit
  // before.
  void closes_at(Token&, Time when) { exit_not_before_ = std::max(exit_not_before_, when); }
  // `bytes` came in over the handler that is visited.
  void moved(Token&, size_t bytes) { moved_bytes_ += bytes; }
  // What came in would have taken so much of its socket's room, in parts of SteadyPolicy::kRoom,
  // and more of it may come uncalled for. Not of TCP, which holds its peers back.
  void took_room(Token&, uint64_t parts) { room_taken_ += parts; }
  void want_write(Token& token, EventHandler& handler, bool on);
  void want_read(Token& token, EventHandler& handler, bool on);
  void set_deadline(Token&, EventHandler& handler, Time when) { deadlines_.set(handler, when); }
  // The handler used up its byte budget: look at it again in this turn, after the others.
  void again(Token&, EventHandler& handler) {
    ready_.push_back(handler);
    ask_all();
  }
  // The program posts small requests one by one and polls between them: more will come before the
  // next turn, and one system call for all is cheaper than one for each. False when it does not
  // poll, or this thread may be about to sleep, for then nobody might send them soon.
  bool gather(Token& token, EventHandler& handler);
  // The handler has output that can wait until the engine falls idle, 50 us at most while the
  // program polls (spec/rdmap 4).
  void defer(Token& token, EventHandler& handler);

  // What the handlers of one kind share here (LocalData::get()).
  template <class T>
  T& local(Token&) {
    return local_data_.get<T>();
  }
  // The bounce buffer that all connections share; contents last until the next call that reads a
  // socket.
  static constexpr size_t kBounce = 256 * 1024;
  MutableBytes bounce(Token&) { return {bounce_.get(), kBounce}; }

  // Does `work`, and where there is no memory for it `otherwise`, for which a reserve is set free:
  // nothing that comes from the network or from a program's limits ends the process.
  template <class Work, class Otherwise>
  void guard(Token& token, Work&& work, Otherwise&& otherwise) {
    try {
      work();
    } catch (const std::bad_alloc&) {
      spend_reserve(token);
      try {
        otherwise();
      } catch (const std::bad_alloc&) {
        say_no_memory();
      }
    }
  }

  // Any thread: after this no handler refers to user memory that was retired before the call.
  void retire_memory();

  // Says what was put off, and waits for connections that close in a moment. Does not wait for a
  // holder that does not let go: the process is about to exit.
  void flush_at_exit();

  // After fork(2), in the child: nothing of this engine may be used again.
  void abandon_in_child();
  // Are its descriptors its own? Programs close those that they have not opened, as daemons do
  // (closefrom(3)), and the numbers may be other files by now. Any thread.
  bool intact() const;
  // They are not: nothing of this engine may be used again. Ends the helper, and closes nothing.
  void abandon_lost();

  unsigned number() const { return number_; }
  // Written by the holder; read by anybody.
  stats::EngineBlock& counter_block() { return counter_block_; }
  stats::EngineCounters& counters() { return counter_block_.counters; }
  static Time clock();
  // Names the calling thread.
  static const void* this_thread();

 private:
  friend class Hold;
  Engine(unsigned number, EngineFds fds, stats::EngineBlock* block);
  int start_helper();

  template <class Work>
  void visit(Token& token, EventHandler& handler, Work&& work) {
    guard(token, std::forward<Work>(work), [&] { handler.on_no_memory(token); });
  }
  void spend_reserve(Token& token);
  void renew_reserve();
  static void say_no_memory();
  static bool waits_for_holder();
  void meet_poller();
  bool turn(Token& token);
  void ask_all();
  void set_apart(EventHandler& handler);
  void bring_back();
  void before_release(Token& token);
  void serve_doorbells(Token& token);
  void bury();
  bool poll_sockets(Token& token);
  bool run_deadlines(Token& token);
  void flush_gathered(Token& token);
  bool defer_is_over(Token& token, bool moved) const;
  void flush_deferred(Token& token);
  void update_interest(EventHandler& handler, bool read, bool write);
  void watch_program(Time now, Duration patience);
  void watch_poller(Time now);
  void watch_sockets(Token& token);
  void watch_output(Token& token, Duration patience);
  // (b): nobody needs the timer in order to be heard.
  bool helper_hears() const {
    return !deaf_.load(std::memory_order_seq_cst) &&
           apart_.load(std::memory_order_relaxed) == nullptr;
  }
  void arm_inner();
  void hear_sockets();
  bool spin(const std::function<bool()>& ready);
  void helper_main();
  void helper_turn(bool rang);
  size_t take_over(Token& token, bool for_sleeper);
  bool linger(Token& token);
  bool is_about_to_sleep() const;  // the calling thread, as far as can be told

  const unsigned number_;
  const std::unique_ptr<stats::EngineBlock> own_counter_block_;
  stats::EngineBlock& counter_block_;
  port::Fd inner_;  // the handlers
  port::Fd outer_;  // what the helper sleeps on: inner_, timer_, wake_
  port::Fd timer_;
  port::Fd wake_;

  port::PiMutex held_;
  std::atomic<int> waiters_{0};  // for set-up and tear-down: pollers stand back
  Doorbells doorbells_;

  // Holder's.
  Deadlines deadlines_;
  IntrusiveList<EventHandler, HandlersTag> handlers_;
  IntrusiveList<EventHandler, ReadyTag> ready_;
  IntrusiveList<EventHandler, GatheringTag> gathering_;
  Time gathers_since_;            // the program's last poll, or when a long burst went out
  const void* poller_ = nullptr;  // the thread that polled last
  SteadyPolicy steady_policy_;
  Duration patience_;  // with a program that has polled as it did last
  IntrusiveList<EventHandler, DeferredTag> deferred_;
  Time deferred_until_ = Time::never();
  Time exit_not_before_;
  EventHandler* hot_ = nullptr;                         // the only one that moves
  Time hot_moved_;                                      // when it last did
  unsigned hot_polls_ = 0;                              // since all were asked
  unsigned hot_hits_ = 0;                               // times that it moved while it was hot
  int events_most_;                                     // sockets that the next turn looks at
  size_t moved_bytes_ = 0;                              // in the helper's turn
  uint64_t room_taken_ = 0;                             // ever
  IntrusiveList<EventHandler, HandlersTag> graveyard_;  // owned, until the turn is over
  LocalData local_data_;
  std::unique_ptr<std::byte[]> bounce_;
  // Less than malloc maps apart, so that what is set free is there for small pieces.
  static constexpr size_t kReserve = size_t{16} << 10;
  std::array<std::unique_ptr<std::byte[]>, 16> reserve_;
  bool reserve_spent_ = true;

  // The hot one, once it has left the epoll set (docs/design/19). Changed by the holder.
  std::atomic<EventHandler*> apart_{nullptr};

  // Who looks after the sockets.
  struct HelperTimer {
    void operator()(Time when) const;
    Engine& engine;
  };
  std::atomic<int64_t> program_turn_{0};  // when a program thread last had a turn, ns
  WakeUpTime<HelperTimer> wake_up_{HelperTimer{*this}};
  std::atomic<int> sleepers_{0};                 // program threads asleep on inner_
  std::atomic<int> expected_sleepers_{0};        // and on descriptors of their own
  std::atomic<const void*> may_sleep_{nullptr};  // the thread that said so last
  std::atomic<uint64_t> may_sleep_since_{0};     // counted in polls
  HelperPolicy policy_;
  SpinPolicy spin_policy_;
  SpinPolicy linger_policy_;
  RestPolicy rest_policy_;
  HeldPolicy held_policy_;
  std::atomic<bool> deaf_{false};  // the helper was told of the sockets, and is not told again yet
  std::atomic<bool> stop_{false};
  HelperSchedule schedule_;
  HelperThread helper_;
};

}  // namespace weft::engine
