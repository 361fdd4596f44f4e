#include "engine/hold.h"

#include "base/put_off_free.h"
#include "engine/engine.h"

namespace weft::engine {

Hold::Hold(Engine& engine) : engine_(&engine), token_(engine) {
  PutOffFree::begin();
}

// The holder does what others left at the door, and looks once more after it has let go: a thread
// that rang in between either got the engine itself or is served here, so no bell goes unheard.
void Hold::let_go() {
  do {
    engine_->before_release(token_);
    engine_->held_.unlock();
  } while (engine_->doorbells_.any() && engine_->held_.try_lock());
  PutOffFree::end();
}

}  // namespace weft::engine
