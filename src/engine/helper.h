// The helper thread of an engine: it runs the engine when no thread of the program does
// (docs/design/02, docs/design/15).
#pragma once

#include <atomic>

#include "engine/event_handler.h"
#include "engine/helper_policy.h"
#include "engine/helper_schedule.h"
#include "engine/helper_thread.h"

namespace weft::engine {

class Engine;

class Helper {
 public:
  explicit Helper(Engine& engine);

  // 0, or the errno of pthread_create(3). Throws std::bad_alloc.
  int start();
  // Waits until the thread is gone. Not a holder.
  void stop();
  // The same where it sleeps in a set that is in nobody's reach any more.
  void cancel();

  // The calling thread polls, and relies on the helper: once for each thread and engine the helper
  // learns its priority.
  void serve_poller();

 private:
  // What the thread does after a turn: it sleeps, or looks again at once.
  enum class Next : uint8_t { sleep, turn };
  struct Taken {
    Next next;
    size_t bytes;  // that came in, as far as that is all there is; 0 where more is waiting
  };
  // Why it looks: the sockets have something, the program's patience may be over, or it has looked
  // before since it woke, and there was more.
  enum class Why : uint8_t { sockets, patience, more };
  void run();
  Next turn(Why why);
  void serve_sleepers(Token& token, bool sleep_expected);
  void come_back_if_left_out(Token& token);
  void serve_active(Token& token, Why why, Time polled);
  Taken take_over(Token& token, bool for_sleeper);
  bool linger(Token& token);

  Engine& engine_;
  uint32_t number_ = 0;  // of all helpers
  SpinPolicy linger_policy_;
  RestPolicy rest_policy_;
  HeldPolicy held_policy_;
  std::atomic<bool> stop_{false};
  HelperSchedule schedule_;
  HelperThread thread_;
};

}  // namespace weft::engine
