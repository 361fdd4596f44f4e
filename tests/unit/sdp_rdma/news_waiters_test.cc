#include "sdp/rdma/news_waiters.h"

#include <gtest/gtest.h>

#include <optional>
#include <thread>

#include "tests/unit/sdp_rdma/fake_adapter.h"

namespace weft::sdp {
namespace {

using testing::FakeAdapter;
constexpr std::chrono::hours kVeryLong{1};

class Peer final : public Completions::Member {
 public:
  ~Peer() override = default;
  void on_mail() override {}
};

// Somebody attends to the queues, so that events are asked for only if a connection counts.
class NewsWaitersTest : public ::testing::Test {
 protected:
  void SetUp() override {
    queue = completions.join(member, &adapter.device, 160);
    ASSERT_NE(queue, nullptr);
    ASSERT_TRUE(completions.on_event());
    ASSERT_FALSE(asks_for_events());
  }
  void TearDown() override { completions.leave(member); }

  // Once: an event that is asked for stays so until it comes.
  bool asks_for_events() {
    const bool asks = completions.rest();
    if (asks) (void)completions.on_event();
    return asks;
  }

  FakeAdapter adapter;
  Completions completions{adapter};
  Peer member;
  ibv_cq* queue = nullptr;
};

TEST_F(NewsWaitersTest, CountWhileSomebodyOutsideWaits) {
  NewsWaiters waiters{completions};
  waiters.want(true);
  EXPECT_TRUE(asks_for_events());
  waiters.want(false);
  EXPECT_FALSE(asks_for_events());
}

TEST_F(NewsWaitersTest, CountOnceHoweverManyThereAre) {
  NewsWaiters waiters{completions};
  waiters.want(true);
  waiters.want(true);
  std::optional<NewsWaiters::Sleeper> first{waiters};
  std::optional<NewsWaiters::Sleeper> second{waiters};
  waiters.want(false);
  first.reset();
  EXPECT_TRUE(asks_for_events()) << "one thread still sleeps";
  second.reset();
  EXPECT_FALSE(asks_for_events());
}

TEST_F(NewsWaitersTest, OfTwoConnectionsCountEach) {
  NewsWaiters one{completions};
  NewsWaiters other{completions};
  one.want(true);
  other.want(true);
  one.want(false);
  EXPECT_TRUE(asks_for_events());
  other.want(false);
  EXPECT_FALSE(asks_for_events());
}

TEST_F(NewsWaitersTest, DoNotCountBehindTheEnd) {
  NewsWaiters waiters{completions};
  waiters.want(true);
  waiters.end();
  EXPECT_FALSE(asks_for_events());
  waiters.want(true);
  const NewsWaiters::Sleeper sleeper{waiters};
  EXPECT_FALSE(asks_for_events());
}

TEST_F(NewsWaitersTest, DoNotCountWhenTheyAreGone) {
  {
    NewsWaiters waiters{completions};
    waiters.want(true);
  }
  EXPECT_FALSE(asks_for_events());
}

TEST_F(NewsWaitersTest, WakeASleeperWhoseNewsCameBeforeItSlept) {
  NewsWaiters waiters{completions};
  const NewsWaiters::Sleeper sleeper{waiters};
  waiters.wake();
  sleeper.sleep(kVeryLong);
}

TEST_F(NewsWaitersTest, WakeAllThatSleep) {
  NewsWaiters waiters{completions};
  NewsWaiters::Sleeper first{waiters};
  NewsWaiters::Sleeper second{waiters};
  std::thread one{[&] { first.sleep(kVeryLong); }};
  std::thread two{[&] { second.sleep(kVeryLong); }};
  waiters.wake();
  one.join();
  two.join();
}

TEST_F(NewsWaitersTest, LetASleeperGoWhenItsTimeIsOver) {
  NewsWaiters waiters{completions};
  const NewsWaiters::Sleeper sleeper{waiters};
  sleeper.sleep(std::chrono::milliseconds{1});
}

}  // namespace
}  // namespace weft::sdp
