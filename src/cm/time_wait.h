// InfiniBand's rdma_cm says TIMEWAIT_EXIT when the queue pair's number may be used again, to
// programs that have disconnected. Some free a connection only then, others end themselves over one
// that they did not ask for. TCP needs no such pause; this is the one that weft gives its numbers
// (spec/addressing 2). iWARP has no such event.
#pragma once

#include "engine/engine.h"

namespace weft::cm {

// Engine holder calls.
class TimeWaitHandler {
 public:
  // TIMEWAIT_EXIT is due. Once.
  virtual void time_wait_over(engine::Token& token) = 0;

 protected:
  ~TimeWaitHandler() = default;
};

// Of one connection. Engine holder; one engine from ended() to the handler's call or cancel().
class TimeWait final : private engine::EventHandler {
 public:
  explicit TimeWait(TimeWaitHandler& handler) : handler_(handler) {}

  // The connection has ended. `program_asked`: the program has disconnected; else the wait begins
  // with disconnected().
  void ended(engine::Token& token, bool program_asked);
  // The program disconnects what has ended.
  void disconnected(engine::Token& token);
  // The engine knows nothing of it afterwards.
  void cancel(engine::Token& token) { token.runtime().forget(token, *this); }

 private:
  void begin(engine::Token& token);
  // engine::EventHandler, without a descriptor
  void on_ready(engine::Token&, bool, bool) override {}
  void on_deadline(engine::Token& token) override { handler_.time_wait_over(token); }
  void on_doorbell(engine::Token&) override {}
  void abandon_in_child() override {}

  TimeWaitHandler& handler_;
  bool owed_ = false;  // ended, and the program has not disconnected yet
};

}  // namespace weft::cm
