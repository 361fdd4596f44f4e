// Holding an engine, as a scope.
#pragma once

#include <utility>

#include "engine/event_handler.h"

namespace weft::engine {

class Engine;

// Made by Engine::hold() and try_hold(). What other threads left at the door is done before the
// engine is let go.
class Hold {
 public:
  Hold(Hold&& other) noexcept
      : engine_(std::exchange(other.engine_, nullptr)),
        token_(other.token_.runtime_, other.token_.now_) {}
  Hold& operator=(Hold&&) = delete;
  ~Hold() {
    if (engine_ != nullptr) let_go();
  }
  Token& token() { return token_; }

 private:
  friend class Engine;
  explicit Hold(Engine& engine);
  void let_go();

  Engine* engine_;  // nullptr: moved from
  Token token_;
};

}  // namespace weft::engine
