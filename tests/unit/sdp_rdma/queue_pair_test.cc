#include "sdp/rdma/queue_pair.h"

#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <vector>

#include "tests/unit/sdp_rdma/fake_adapter.h"

namespace weft::sdp {
namespace {

using testing::FakeAdapter;
using Work = QueuePair::Work;

class Receiver final : public Completions::Member {
 public:
  ~Receiver() override = default;
  void on_mail() override {}
  Completed take() { return mail_.take(); }
  bool has_mail() const { return !mail_.empty(); }
};

// A queue pair of an adapter that keeps what is posted, and completes it when the test says so.
class QueuePairTest : public ::testing::Test {
 protected:
  struct Posted {
    uint64_t wr_id = 0;
    ibv_wr_opcode opcode{};
    unsigned flags = 0;
    ibv_sge piece{};
    uint64_t remote = 0;
    uint32_t rkey = 0;
  };

  void SetUp() override {
    adapter.device.ops.post_send = [](ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr**) {
      auto& test = *static_cast<QueuePairTest*>(qp->qp_context);
      if (test.refuses) return ENOMEM;
      test.posted.push_back({wr->wr_id, wr->opcode, wr->send_flags, *wr->sg_list,
                             wr->wr.rdma.remote_addr, wr->wr.rdma.rkey});
      return 0;
    };
    adapter.device.ops.post_recv = [](ibv_qp* qp, ibv_recv_wr* wr, ibv_recv_wr**) {
      auto& test = *static_cast<QueuePairTest*>(qp->qp_context);
      if (test.refuses) return ENOMEM;
      test.posted.push_back({.wr_id = wr->wr_id, .piece = *wr->sg_list});
      return 0;
    };
    kernel_pair.context = &adapter.device;
    kernel_pair.qp_context = this;
    id.qp = &kernel_pair;
    id.pd = &domain;
    queue = completions.join(member, &adapter.device, 160);
    ASSERT_NE(queue, nullptr);
    pair.own(&id);
  }
  void TearDown() override { completions.leave(member); }

  // The oldest that was posted, as the connection hears of it.
  Completed complete() {
    ibv_wc wc{};
    wc.wr_id = posted.front().wr_id;
    posted.erase(posted.begin());
    EXPECT_TRUE(FakeAdapter::of(queue).complete(wc));
    (void)completions.take(Completions::How::surely);
    if (!member.has_mail()) return {};
    const Completed completed = member.take();
    pair.completed(static_cast<Work>(completed.work), completed.ok);
    return completed;
  }

  FakeAdapter adapter;
  Completions completions{adapter};
  Receiver member;
  ibv_cq* queue = nullptr;
  ibv_qp kernel_pair{};
  ibv_pd domain{};
  rdma_cm_id id{};
  bool refuses = false;
  std::vector<Posted> posted;
  QueuePair pair{member};
  std::array<std::byte, 100> memory{};
};

TEST_F(QueuePairTest, SendsFromRegisteredMemory) {
  ASSERT_TRUE(pair.send({memory.data() + 3, 90, 17}));
  ASSERT_EQ(posted.size(), 1U);
  EXPECT_EQ(posted[0].opcode, IBV_WR_SEND);
  EXPECT_EQ(posted[0].flags, unsigned{IBV_SEND_SIGNALED});
  EXPECT_EQ(posted[0].piece.addr, reinterpret_cast<uintptr_t>(memory.data() + 3));
  EXPECT_EQ(posted[0].piece.length, 90U);
  EXPECT_EQ(posted[0].piece.lkey, 17U);
  EXPECT_EQ(complete().work, static_cast<uint8_t>(Work::data));
}

TEST_F(QueuePairTest, SendsInlineWhatIsGoneAtOnce) {
  ASSERT_TRUE(pair.send_inline(memory.data() + 1, 32));
  EXPECT_EQ(posted.at(0).opcode, IBV_WR_SEND);
  EXPECT_EQ(posted[0].flags, unsigned{IBV_SEND_SIGNALED | IBV_SEND_INLINE});
  EXPECT_EQ(posted[0].piece.addr, reinterpret_cast<uintptr_t>(memory.data() + 1));
  EXPECT_EQ(posted[0].piece.length, 32U);
  EXPECT_EQ(complete().work, static_cast<uint8_t>(Work::control));
}

TEST_F(QueuePairTest, ReadsFromWhereThePeerSays) {
  ASSERT_TRUE(pair.read({memory.data(), 50, 5}, {0x1234567890, 99}));
  EXPECT_EQ(posted.at(0).opcode, IBV_WR_RDMA_READ);
  EXPECT_EQ(posted[0].piece.lkey, 5U);
  EXPECT_EQ(posted[0].remote, 0x1234567890U);
  EXPECT_EQ(posted[0].rkey, 99U);
  EXPECT_EQ(pair.writes(), 0U);
  EXPECT_EQ(complete().work, static_cast<uint8_t>(Work::read));
}

TEST_F(QueuePairTest, CountsTheWritesThatHaveNotCompleted) {
  ASSERT_TRUE(pair.write({memory.data(), 50, 5}, {0x1234567890, 99}));
  ASSERT_TRUE(pair.send({memory.data(), 40, 5}));
  ASSERT_TRUE(pair.write({memory.data(), 30, 5}, {0x1234567890, 98}));
  EXPECT_EQ(posted.at(2).opcode, IBV_WR_RDMA_WRITE);
  EXPECT_EQ(posted[2].remote, 0x1234567890U);
  EXPECT_EQ(posted[2].rkey, 98U);
  EXPECT_EQ(pair.writes(), 2U);
  EXPECT_EQ(complete().work, static_cast<uint8_t>(Work::write));
  EXPECT_EQ(pair.writes(), 1U);
  (void)complete();
  EXPECT_EQ(pair.writes(), 1U);
  (void)complete();
  EXPECT_EQ(pair.writes(), 0U);
}

TEST_F(QueuePairTest, HasAPlaceAgainWithEachCompletion) {
  for (uint32_t i = 0; i < QueuePair::kSends; ++i) {
    ASSERT_TRUE(pair.has_place());
    ASSERT_EQ(pair.places(), QueuePair::kSends - i);
    ASSERT_TRUE(pair.send({memory.data(), 1 + i % 100, 5}));
  }
  EXPECT_FALSE(pair.has_place());
  (void)complete();
  EXPECT_EQ(pair.places(), 1U);
  while (!posted.empty()) (void)complete();
  EXPECT_TRUE(pair.all_completed());
}

TEST_F(QueuePairTest, ReceivesTakeNoPlaceOfTheSendQueue) {
  ASSERT_TRUE(pair.post_receive({memory.data() + 7, 93, 5}, 31));
  EXPECT_EQ(pair.places(), QueuePair::kSends);
  EXPECT_EQ(posted.at(0).piece.addr, reinterpret_cast<uintptr_t>(memory.data() + 7));
  const Completed completed = complete();
  EXPECT_EQ(completed.work, static_cast<uint8_t>(Work::receive));
  EXPECT_EQ(completed.number, 31);
  EXPECT_EQ(pair.places(), QueuePair::kSends);
}

TEST_F(QueuePairTest, IsDownOnceItRefusesARequest) {
  refuses = true;
  EXPECT_FALSE(pair.post_receive({memory.data(), 100, 5}, 0));
  EXPECT_FALSE(pair.down()) << "without a receive less comes, and what is there goes on";
  EXPECT_FALSE(pair.write({memory.data(), 50, 5}, {1, 2}));
  EXPECT_TRUE(pair.down());
  EXPECT_TRUE(pair.all_completed()) << "what was refused takes no place";
  EXPECT_EQ(pair.writes(), 0U);
  refuses = false;
  EXPECT_TRUE(pair.send({memory.data(), 50, 5}));
  EXPECT_TRUE(pair.down());
}

TEST_F(QueuePairTest, IsDownOnceARequestFails) {
  ASSERT_TRUE(pair.send({memory.data(), 50, 5}));
  ASSERT_TRUE(pair.write({memory.data(), 50, 5}, {1, 2}));
  pair.completed(Work::data, true);
  EXPECT_FALSE(pair.down());
  pair.completed(Work::write, false);
  EXPECT_TRUE(pair.down());
  EXPECT_TRUE(pair.all_completed());
  EXPECT_EQ(pair.writes(), 0U);
}

TEST_F(QueuePairTest, IsDownWithItsCompletionQueue) {
  pair.completed(Work::broken, false);
  EXPECT_TRUE(pair.down());
  EXPECT_EQ(pair.places(), QueuePair::kSends);
}

TEST_F(QueuePairTest, RefusesEverythingWhenItIsNotThere) {
  id.qp = nullptr;
  EXPECT_EQ(pair.pd(), &domain);
  EXPECT_FALSE(pair.post_receive({memory.data(), 100, 5}, 0));
  EXPECT_FALSE(pair.send({memory.data(), 50, 5}));
  EXPECT_TRUE(pair.down());
  EXPECT_TRUE(posted.empty());
  EXPECT_EQ(QueuePair{member}.pd(), nullptr);
}

}  // namespace
}  // namespace weft::sdp
