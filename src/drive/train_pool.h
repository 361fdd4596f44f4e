// Trains for the sockets of one engine.
#pragma once

#include "drive/area_pool.h"
#include "engine/runtime.h"
#include "wdp/train.h"

namespace weft::drive {

// Engine holder only.
class TrainPool final : public AreaPool<wdp::Train> {
 public:
  // The pool of the engine that is held.
  static TrainPool& of(engine::Token& token) { return token.runtime().local<TrainPool>(token); }
};

}  // namespace weft::drive
