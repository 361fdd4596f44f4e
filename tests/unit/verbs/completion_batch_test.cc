#include "verbs/completion_batch.h"

#include "tests/unit/verbs/fixture.h"

namespace weft::verbs {
namespace {

class CompletionBatchTest : public VerbsTest {
 protected:
  static std::vector<uint64_t> ids(CompletionQueue& cq) {
    std::vector<uint64_t> all;
    Completion c[8];
    const size_t n = cq.pop(c);
    for (size_t i = 0; i < n; ++i) all.push_back(c[i].wr_id);
    return all;
  }
  CompletionQueue sends{context, 4, nullptr, nullptr, false};
  CompletionQueue receives{context, 2, nullptr, &receives, false};
  CompletionBatch batch{sends, receives};
};

TEST_F(CompletionBatchTest, NothingIsSeenBeforeTheEndOfAVisit) {
  batch.sent({.wr_id = 1});
  batch.received({.wr_id = 2}, false);
  batch.sent({.wr_id = 3});
  EXPECT_TRUE(ids(sends).empty());
  EXPECT_TRUE(ids(receives).empty());
  EXPECT_TRUE(batch.publish());
  EXPECT_EQ(ids(sends), (std::vector<uint64_t>{1, 3}));
  EXPECT_EQ(ids(receives), (std::vector<uint64_t>{2}));
  // Once.
  EXPECT_TRUE(batch.publish());
  EXPECT_TRUE(ids(sends).empty());
}

TEST_F(CompletionBatchTest, SaysThatOneWasLost) {
  for (uint64_t i = 0; i < 3; ++i) batch.received({.wr_id = i}, false);
  EXPECT_FALSE(batch.publish());
  EXPECT_EQ(ids(receives), (std::vector<uint64_t>{0, 1}));
  batch.received({.wr_id = 3}, false);
  EXPECT_TRUE(batch.publish()) << "it is told once";
}

TEST_F(CompletionBatchTest, WhatIsClearedIsNeverSeen) {
  batch.sent({.wr_id = 1});
  batch.received({.wr_id = 2}, true);
  batch.clear();
  EXPECT_TRUE(batch.publish());
  EXPECT_TRUE(ids(sends).empty());
  EXPECT_TRUE(ids(receives).empty());
}

// InfiniBand 11.4.2.1: what a completion says of its request.
TEST(CompletionOf, EachOperation) {
  using enum work::Operation;
  const std::pair<work::Operation, WcOpcode> rows[] = {
      {send, WcOpcode::send},
      {send_immediate, WcOpcode::send},
      {send_invalidate, WcOpcode::send},
      {write, WcOpcode::rdma_write},
      {write_immediate, WcOpcode::rdma_write},
      {read, WcOpcode::rdma_read},
      {fetch_add, WcOpcode::fetch_add},
      {compare_swap, WcOpcode::comp_swap},
      {local_invalidate, WcOpcode::local_inv},
      {bind_window, WcOpcode::bind_mw},
  };
  for (const auto& [operation, opcode] : rows) {
    work::SendWqe wqe{.wr_id = 77, .operation = operation, .length = 12};
    const Completion c = completion_of(wqe, Status::remote_access);
    EXPECT_EQ(c.opcode, opcode);
    EXPECT_EQ(c.wr_id, 77U);
    EXPECT_EQ(c.byte_len, 12U);
    EXPECT_EQ(c.status, Status::remote_access);
  }
}

TEST(CompletionOf, EachKindOfArrival) {
  const work::Receive r{.wr_id = 5, .segments = 0, .length = 0, .segment = {}};
  const Completion plain = completion_of(r, Status::success, {.length = 9});
  EXPECT_EQ(plain.opcode, WcOpcode::recv);
  EXPECT_EQ(plain.flags, 0);
  EXPECT_EQ(plain.byte_len, 9U);
  EXPECT_EQ(plain.wr_id, 5U);
  const Completion immediate =
      completion_of(r, Status::success,
                    {.write_with_immediate = true, .has_immediate = true, .immediate = 0x01020304});
  EXPECT_EQ(immediate.opcode, WcOpcode::recv_rdma_with_imm);
  EXPECT_EQ(immediate.flags, wc_flag::kWithImm);
  EXPECT_EQ(immediate.imm_or_rkey, 0x01020304U);
  const Completion invalidated = completion_of(
      r, Status::success, {.invalidated = true, .invalidated_stag = Stag{0x0a0b0c0d}});
  EXPECT_EQ(invalidated.flags, wc_flag::kWithInv);
  EXPECT_EQ(invalidated.imm_or_rkey, 0x0a0b0c0dU);
}

}  // namespace
}  // namespace weft::verbs
