#include "verbs/receives.h"

#include "tests/unit/verbs/pair_fixture.h"

namespace weft::verbs {
namespace {

class ReceivesTest : public PairTest {
 protected:
  static Outcome<Ok> post(QueuePair& qp, uint64_t wr_id) {
    const ReceiveRequest r{.wr_id = wr_id};
    size_t posted = 0;
    return qp.receives().post(&r, 1, posted);
  }
};

TEST_F(ReceivesTest, InTheOrderInWhichTheyArePosted) {
  auto qp = make();
  Receives& receives = qp->receives();
  for (uint64_t i = 0; i < 8; ++i) ASSERT_TRUE(post(*qp, i).ok());
  EXPECT_EQ(post(*qp, 8).error(), Errc::no_memory);
  auto h = qp->engine().hold();
  EXPECT_FALSE(receives.out());
  work::Receive r;
  for (uint64_t i = 0; i < 8; ++i) {
    ASSERT_TRUE(receives.take(r));
    EXPECT_EQ(r.wr_id, i);
  }
  EXPECT_FALSE(receives.take(r));
}

// Who finds none is rung for by each post, until the bell was heard.
TEST_F(ReceivesTest, APostRingsForWhoWaits) {
  auto qp = make();
  Receives& receives = qp->receives();
  EXPECT_FALSE(receives.wanted());
  work::Receive r;
  EXPECT_FALSE(receives.take(r));
  EXPECT_TRUE(receives.wanted());
  EXPECT_TRUE(receives.wanted());
  receives.heard();
  EXPECT_FALSE(receives.wanted());

  EXPECT_TRUE(receives.out());
  EXPECT_TRUE(receives.wanted());
  receives.heard();

  receives.want();
  EXPECT_TRUE(receives.wanted());
}

TEST_F(ReceivesTest, AMessageThatFindsOneWaitsForNone) {
  auto qp = make();
  Receives& receives = qp->receives();
  ASSERT_TRUE(post(*qp, 1).ok());
  work::Receive r;
  EXPECT_TRUE(receives.take(r));
  EXPECT_FALSE(receives.wanted());
}

TEST_F(ReceivesTest, OfASharedQueue) {
  SharedReceiveQueue shared{domain, 4, 1, nullptr};
  {
    auto qp = make(QpType::rc, &shared);
    Receives& receives = qp->receives();
    EXPECT_EQ(receives.shared(), &shared);
    const ReceiveRequest request{.wr_id = 3};
    size_t posted = 0;
    ASSERT_TRUE(shared.post(&request, 1, posted).ok());
    EXPECT_FALSE(qp->post_receive(&request, 1, posted).ok());
    EXPECT_EQ(qp->receive_fault(0).rule, PostFault::Rule::shared_receives);
    auto h = qp->engine().hold();
    work::Receive r;
    EXPECT_FALSE(receives.take_own(r)) << "the shared queue's are not flushed with one queue pair";
    EXPECT_FALSE(receives.out());
    ASSERT_TRUE(receives.take(r));
    EXPECT_EQ(r.wr_id, 3U);
    EXPECT_TRUE(receives.out());
  }
  EXPECT_FALSE(shared.in_use());
}

}  // namespace
}  // namespace weft::verbs
