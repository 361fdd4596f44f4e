// What is kept for the moment when there is no memory: enough to end connections in order.
#include <new>

#include "base/log.h"
#include "engine/engine.h"

namespace weft::engine {

void Engine::spend_reserve(Token&) {
  counters().out_of_memory.add();
  reserve_spent_ = true;
  for (auto& piece : reserve_) {
    if (!piece) continue;
    piece.reset();
    return;
  }
}

void Engine::renew_reserve() {
  reserve_spent_ = false;
  for (auto& piece : reserve_) {
    if (!piece) piece.reset(new (std::nothrow) std::byte[kReserve]);
    reserve_spent_ |= !piece;
  }
}

void Engine::say_no_memory() {
  WEFT_LOG(error,
           "no memory even to end a connection; it is tried again. Remedy: raise the limits of "
           "address space and memory of this process");
}

}  // namespace weft::engine
