// What handlers may ask of the one that runs them: an Engine, with threads and epoll, or the
// simulator (sim/host/runtime.h), with virtual time. Token::runtime() gives it. Design/21.
#pragma once

#include <algorithm>
#include <memory>
#include <utility>

#include "base/bytes.h"
#include "base/random.h"
#include "base/staging_area.h"
#include "engine/event_handler.h"
#include "engine/helper_policy.h"
#include "engine/local_data.h"
#include "engine/memory_reserve.h"
#include "port/peer_word.h"
#include "stats/blocks.h"

namespace weft::engine {

// Engine holder only: each function takes the token that says so.
class Runtime {
 public:
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;
  virtual ~Runtime() = default;

  // --- handlers
  // Takes over the handler and watches `fd` for it; -1: nothing. Throws std::bad_alloc where `fd`
  // cannot be watched, and the handler is gone then.
  virtual void add(Token& token, std::unique_ptr<EventHandler> handler, int fd, bool read,
                   bool write) = 0;
  // Stops watching. The handler is deleted when the turn is over.
  virtual void remove(Token& token, EventHandler& handler) = 0;
  // Lets go of a handler that somebody else owns: no bell, deadline or descriptor of it is left
  // behind.
  virtual void forget(Token& token, EventHandler& handler) = 0;
  // Watches another descriptor for the handler; -1: none. Throws std::bad_alloc where it cannot be
  // watched, and none is then.
  virtual void rewatch(Token& token, EventHandler& handler, int fd, bool read, bool write) = 0;
  void want_read(Token& token, EventHandler& handler, bool on) {
    if (handler.wants_read_ != on) update_interest(token, handler, on, handler.wants_write_);
  }
  void want_write(Token& token, EventHandler& handler, bool on) {
    if (handler.wants_write_ != on) update_interest(token, handler, handler.wants_read_, on);
  }
  // The handler's input is in memory, and it was just heard of: a program that polls asks it by
  // try_receive(), and says by EventHandler::use_descriptor() when it does not.
  virtual void ask_memory(Token& token, EventHandler& handler) = 0;
  // Until the handler is visited again, there is nothing to ask it for while `word` has not
  // changed.
  virtual void ask_memory_after(Token& token, EventHandler& handler,
                                const port::PeerWord& word) = 0;
  // Time::never(): none. Throws std::bad_alloc.
  void set_deadline(Token& token, EventHandler& handler, Time when) {
    if (handler.deadline_ != when) update_deadline(token, handler, when);
  }
  // The handler used up its byte budget: look at it again in this turn, after the others.
  virtual void again(Token& token, EventHandler& handler) = 0;
  // The same on the way out: wait for epoll to say that there is room.
  virtual void more_to_send(Token& token, EventHandler& handler) = 0;

  // --- output that waits
  // The program posts requests one by one and polls between them: more will come before the
  // next turn, and one system call for all is cheaper than one for each. False when it does not
  // poll, or this thread may be about to sleep, for then nobody might send them soon.
  virtual bool gather(Token& token, EventHandler& handler) = 0;
  // The handler has output that can wait until the engine falls idle, 50 us at most while the
  // program polls (spec/rdmap 4).
  virtual void defer(Token& token, EventHandler& handler) = 0;
  // A connection that the program is done with will be closed then; the process does not exit
  // before.
  virtual void closes_at(Token& token, Time when) = 0;

  // --- what came in
  // So many bytes in this turn.
  void received(Token&, size_t bytes) { received_bytes_ += bytes; }
  // Counts receive-buffer space taken by unsolicited data; decides how soon the helper takes over.
  // Not for TCP, which holds its peers back. `bytes` of a buffer of `buffer` bytes.
  void unsolicited(Token&, size_t bytes, size_t buffer) {
    unsolicited_ += bytes * SteadyPolicy::kRoom / std::max<size_t>(buffer, 1);
  }

  // --- memory
  // The bounce buffer that all connections share; contents last until the next call that reads a
  // socket.
  static constexpr size_t kBounce = 256 * 1024;
  MutableBytes bounce(Token&) { return {bounce_.data(), kBounce}; }
  // What the handlers of one kind share here (LocalData::get()).
  template <class T>
  T& local(Token&) {
    return local_data_.get<T>();
  }
  // Nothing that comes from the network or from a program's limits ends the process: does `work`,
  // and where there is no memory for it `otherwise` (MemoryReserve::guard()).
  template <class Work, class Otherwise>
  void guard(Token&, Work&& work, Otherwise&& otherwise) {
    reserve_.guard(std::forward<Work>(work), std::forward<Otherwise>(otherwise));
  }
  // Calls `work` of the handler, which hears of it where there is no memory.
  template <class Work>
  void visit(Token& token, EventHandler& handler, Work&& work) {
    guard(token, std::forward<Work>(work), [&] { handler.on_no_memory(token); });
  }

  // For tokens, sequence numbers and pauses; lives as long as the runtime.
  Random& random(Token&) { return *random_; }

  // Written by the holder; read by anybody.
  stats::EngineBlock& counter_block() { return counter_block_; }
  stats::EngineCounters& counters() { return counter_block_.counters; }

 protected:
  // `block`: where it counts; nullptr: in memory of its own.
  Runtime(stats::EngineBlock* block, std::unique_ptr<Random> random)
      : own_counter_block_(block == nullptr ? std::make_unique<stats::EngineBlock>() : nullptr),
        counter_block_(block == nullptr ? *own_counter_block_ : *block),
        random_(std::move(random)),
        bounce_(kBounce),
        reserve_(counter_block_.counters.out_of_memory) {}

  static Token token_of(Runtime& runtime, Time now) { return Token{runtime, now}; }
  // The turn goes on: another time.
  static void set_now(Token& token, Time now) { token.now_ = now; }
  MemoryReserve& reserve() { return reserve_; }
  uint64_t unsolicited() const { return unsolicited_; }
  // Of a handler, for the runtime that watches it.
  static int fd_of(const EventHandler& handler) { return handler.fd_; }
  static bool wants_read(const EventHandler& handler) { return handler.wants_read_; }
  static bool wants_write(const EventHandler& handler) { return handler.wants_write_; }
  static void set_watched(EventHandler& handler, int fd, bool read, bool write) {
    handler.fd_ = fd;
    handler.wants_read_ = read;
    handler.wants_write_ = write;
  }
  // Since the last call.
  size_t take_received() { return std::exchange(received_bytes_, 0); }

 private:
  virtual void update_interest(Token& token, EventHandler& handler, bool read, bool write) = 0;
  virtual void update_deadline(Token& token, EventHandler& handler, Time when) = 0;

  const std::unique_ptr<stats::EngineBlock> own_counter_block_;
  stats::EngineBlock& counter_block_;
  const std::unique_ptr<Random> random_;
  const StagingArea bounce_;
  MemoryReserve reserve_;
  LocalData local_data_;
  size_t received_bytes_ = 0;
  uint64_t unsolicited_ = 0;
};

}  // namespace weft::engine
