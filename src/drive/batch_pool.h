// Batches for the streams of one engine. A stream has one of its own only while the socket has no
// room for it, so that a thousand idle connections have no staging area each.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "engine/runtime.h"
#include "mpa/tx_batch.h"

namespace weft::drive {

// Engine holder only.
class BatchPool {
 public:
  BatchPool() { batches_.reserve(kKept); }
  // The pool of the engine that is held.
  static BatchPool& of(engine::Token& token) { return token.runtime().local<BatchPool>(token); }

  // An empty one. Throws std::bad_alloc.
  std::unique_ptr<mpa::TxBatch> take() {
    if (batches_.empty()) return std::make_unique<mpa::TxBatch>();
    auto batch = std::move(batches_.back());
    batches_.pop_back();
    return batch;
  }
  // Whatever is in it is dropped.
  void give(std::unique_ptr<mpa::TxBatch> batch) {
    batch->clear();
    if (batches_.size() < kKept) batches_.push_back(std::move(batch));
  }

 private:
  // A stream that goes on takes back what it has just given.
  static constexpr size_t kKept = 2;
  std::vector<std::unique_ptr<mpa::TxBatch>> batches_;
};

}  // namespace weft::drive
