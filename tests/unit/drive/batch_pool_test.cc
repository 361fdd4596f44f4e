#include "drive/batch_pool.h"

#include <gtest/gtest.h>

#include "engine/engine.h"

namespace weft::drive {
namespace {

TEST(BatchPool, GivesBackWhatItWasGivenClean) {
  BatchPool pool;
  auto batch = pool.take();
  batch->stage(100);
  mpa::TxBatch* const first = batch.get();
  pool.give(std::move(batch));
  batch = pool.take();
  EXPECT_EQ(batch.get(), first);
  EXPECT_TRUE(batch->empty());
  const auto second = pool.take();
  ASSERT_NE(second, nullptr);
  EXPECT_NE(second.get(), first) << "that one is in use";
}

TEST(BatchPool, IsTheEngines) {
  auto engine = std::move(*engine::Engine::create(0));
  auto other = std::move(*engine::Engine::create(1));
  engine::Hold hold = engine->hold();
  engine::Hold second = other->hold();
  EXPECT_EQ(&BatchPool::of(hold.token()), &BatchPool::of(hold.token()));
  EXPECT_NE(&BatchPool::of(hold.token()), &BatchPool::of(second.token()));
}

}  // namespace
}  // namespace weft::drive
