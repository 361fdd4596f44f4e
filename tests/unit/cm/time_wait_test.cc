#include "cm/time_wait.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>

namespace weft::cm {
namespace {

// Counts, by whoever holds the engine.
struct Over final : TimeWaitHandler {
  void time_wait_over(engine::Token&) override { ++times; }
  std::atomic<int> times{0};
};

class TimeWaitTest : public testing::Test {
 protected:
  void SetUp() override {
    auto e = engine::Engine::create(0);
    ASSERT_TRUE(e.ok());
    engine_ = std::move(*e);
  }
  void TearDown() override {
    auto h = engine_->hold();
    for (TimeWait* w : {&first_, &second_}) w->cancel(h.token());
  }
  void await(const Over& over) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds{20};
    while (over.times == 0 && std::chrono::steady_clock::now() < until) engine_->progress();
    EXPECT_EQ(over.times, 1);
  }

  std::unique_ptr<engine::Engine> engine_;
  Over first_over_;
  Over second_over_;
  TimeWait first_{first_over_};
  TimeWait second_{second_over_};
};

TEST_F(TimeWaitTest, BeginsAtTheEndThatTheProgramAskedFor) {
  {
    auto h = engine_->hold();
    first_.ended(h.token(), true);
    first_.disconnected(h.token());
  }
  await(first_over_);
}

// The first would be over before the second, if it had begun.
TEST_F(TimeWaitTest, WaitsForTheProgramWhereThePeerEndedIt) {
  {
    auto h = engine_->hold();
    first_.ended(h.token(), false);
    second_.ended(h.token(), false);
    second_.disconnected(h.token());
  }
  await(second_over_);
  EXPECT_EQ(first_over_.times, 0);
}

TEST_F(TimeWaitTest, IsNotHeardOfOnceItIsCancelled) {
  {
    auto h = engine_->hold();
    first_.ended(h.token(), true);
    first_.cancel(h.token());
    second_.ended(h.token(), true);
  }
  await(second_over_);
  EXPECT_EQ(first_over_.times, 0);
}

}  // namespace
}  // namespace weft::cm
