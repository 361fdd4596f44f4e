// Holding an engine, as a scope.
#pragma once

#include "engine/event_handler.h"

namespace weft::engine {

class Engine;

// Made by Engine::hold() and try_hold(). What other threads left at the door is done before the
// engine is let go.
class Hold {
 public:
  Hold(Hold&& other) noexcept;
  Hold& operator=(Hold&&) = delete;
  ~Hold();
  Token& token() { return token_; }

 private:
  friend class Engine;
  explicit Hold(Engine& engine);
  Engine* engine_;  // nullptr: moved from
  Token token_;
};

}  // namespace weft::engine
