// Batches for the streams of one engine.
#pragma once

#include "drive/area_pool.h"
#include "engine/runtime.h"
#include "mpa/tx_batch.h"

namespace weft::drive {

// Engine holder only.
class BatchPool final : public AreaPool<mpa::TxBatch> {
 public:
  // The pool of the engine that is held.
  static BatchPool& of(engine::Token& token) { return token.runtime().local<BatchPool>(token); }
};

}  // namespace weft::drive
