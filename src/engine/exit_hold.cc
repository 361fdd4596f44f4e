#include "engine/exit_hold.h"

#include <thread>

#include "engine/engine.h"

namespace weft::engine {

std::optional<Hold> hold_at_exit(Engine& engine) {
  constexpr std::chrono::microseconds kPause{50};
  constexpr int kTries = 100;
  for (int i = 0; i < kTries; ++i) {
    if (auto h = engine.try_hold()) return h;
    std::this_thread::sleep_for(kPause);
  }
  return {};
}

}  // namespace weft::engine
