#include "engine/hold.h"

#include <utility>

#include "engine/engine.h"

namespace weft::engine {

Hold::Hold(Engine& engine) : engine_(&engine), token_(engine) {}

Hold::Hold(Hold&& other) noexcept
    : engine_(std::exchange(other.engine_, nullptr)),
      token_(other.token_.runtime_, other.token_.now_) {}

// The holder does what others left at the door, and looks once more after it has let go: a thread
// that rang in between either got the engine itself or is served here, so no bell goes unheard.
Hold::~Hold() {
  if (engine_ == nullptr) return;
  do {
    engine_->before_release(token_);
    engine_->held_.unlock();
  } while (engine_->doorbells_.any() && engine_->held_.try_lock());
}

}  // namespace weft::engine
