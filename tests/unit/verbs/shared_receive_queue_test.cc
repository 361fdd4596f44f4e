#include "verbs/shared_receive_queue.h"

#include "tests/unit/verbs/pair_fixture.h"

namespace weft::verbs {
namespace {

struct SharedReceiveQueueTest : PairTest {
  size_t post(std::initializer_list<uint64_t> ids) {
    std::vector<ReceiveRequest> requests;
    for (const uint64_t id : ids) requests.push_back({.wr_id = id});
    size_t posted = 0;
    (void)shared.post(requests.data(), requests.size(), posted);
    return posted;
  }
  std::optional<uint64_t> take(QueuePair& qp) {
    auto h = qp.engine().hold();
    work::Receive r;
    return shared.take(r, qp) ? std::optional{r.wr_id} : std::nullopt;
  }

  int owner = 0;
  SharedReceiveQueue shared{domain, 4, 1, &owner};
};

TEST_F(SharedReceiveQueueTest, QueuePairsTakeFromItInOrder) {
  auto a = make(QpType::rc, &shared);
  auto b = make(QpType::rc, &shared);
  EXPECT_EQ(post({1, 2, 3, 4, 5}), 4U) << "as many as it has room for";
  EXPECT_EQ(take(*a), 1U);
  EXPECT_EQ(take(*b), 2U);
  EXPECT_EQ(take(*b), 3U);
  EXPECT_EQ(take(*a), 4U);
  EXPECT_EQ(take(*a), std::nullopt);
}

// The event comes once for each time that the limit is armed.
TEST_F(SharedReceiveQueueTest, TheLimitTellsOnce) {
  auto qp = make(QpType::rc, &shared);
  EXPECT_FALSE(shared.set_limit(5).ok());
  ASSERT_TRUE(shared.set_limit(3).ok());
  EXPECT_EQ(shared.limit(), 3U);
  ASSERT_EQ(post({1, 2, 3, 4}), 4U);
  take(*qp);
  EXPECT_TRUE(here.events().empty()) << "three are left";
  take(*qp);
  const AsyncEvent reached{EventType::srq_limit_reached, &owner};
  EXPECT_EQ(here.events().try_pop(), reached);
  EXPECT_EQ(shared.limit(), 0U) << "it is not armed any more";
  take(*qp);
  EXPECT_TRUE(here.events().empty());
}

// A program posts and arms again upon the event. Its receives may all be taken in between.
TEST_F(SharedReceiveQueueTest, ALimitThatComesBehindTheLastReceiveTells) {
  auto qp = make(QpType::rc, &shared);
  const AsyncEvent reached{EventType::srq_limit_reached, &owner};
  ASSERT_EQ(post({1}), 1U);
  EXPECT_EQ(take(*qp), 1U);
  ASSERT_TRUE(shared.set_limit(2).ok());
  EXPECT_TRUE(here.events().empty()) << "nobody asks for one";
  EXPECT_EQ(take(*qp), std::nullopt);
  EXPECT_EQ(here.events().try_pop(), reached) << "somebody does";
  EXPECT_EQ(shared.limit(), 0U);
  ASSERT_TRUE(shared.set_limit(2).ok());
  EXPECT_EQ(here.events().try_pop(), reached) << "and waits";
  EXPECT_EQ(shared.limit(), 0U);
}

TEST_F(SharedReceiveQueueTest, NobodyNeedsToBeToldWithoutALimit) {
  auto qp = make(QpType::rc, &shared);
  ASSERT_TRUE(shared.set_limit(0).ok());
  post({1});
  take(*qp);
  EXPECT_TRUE(here.events().empty());
}

TEST_F(SharedReceiveQueueTest, WhetherThereIsOneIsAskedWithoutTakingIt) {
  auto qp = make(QpType::rc, &shared);
  auto h = qp->engine().hold();
  EXPECT_TRUE(shared.empty_for(*qp));
  post({7});
  EXPECT_FALSE(shared.empty_for(*qp));
  work::Receive r;
  ASSERT_TRUE(shared.take(r, *qp));
  EXPECT_EQ(r.wr_id, 7U);
}

TEST_F(SharedReceiveQueueTest, IsInUseAsLongAsAQueuePairHasIt) {
  EXPECT_FALSE(shared.in_use());
  auto qp = make(QpType::rc, &shared);
  EXPECT_TRUE(shared.in_use());
  qp.reset();
  EXPECT_FALSE(shared.in_use());
}

}  // namespace
}  // namespace weft::verbs
