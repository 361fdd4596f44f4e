#include "verbs/send_posting.h"

#include "tests/unit/verbs/pair_fixture.h"
#include "verbs/address_handle.h"

namespace weft::verbs {
namespace {

using Rule = PostFault::Rule;

class SendPostingTest : public PairTest {
 protected:
  // What a queue pair says of one request; nothing is committed.
  static PostFault judged(QueuePair& qp, const SendRequest& request) {
    SendPosting posting{qp};
    if (posting.add(request).ok()) return {};
    return posting.fault();
  }
  std::array<std::byte, 16> bytes{};
  LocalSegment two[2] = {{reinterpret_cast<uintptr_t>(bytes.data()), 8, Stag{1}},
                         {reinterpret_cast<uintptr_t>(bytes.data()) + 8, 8, Stag{1}}};
};

TEST_F(SendPostingTest, TheRuleThatARequestBreaks) {
  auto qp = make();
  EXPECT_EQ(judged(*qp, {}).rule, Rule::state);
  to_rts(*qp);
  EXPECT_EQ(judged(*qp, {.operation = work::Operation::send}).rule, Rule::none);

  const PostFault segments =
      judged(*qp, {.operation = work::Operation::send, .segments = two, .count = 2});
  EXPECT_EQ(segments.rule, Rule::segments);
  EXPECT_EQ(segments.asked, 2U);
  EXPECT_EQ(segments.limit, 1U);
  // Inline data need no segments of their own.
  EXPECT_EQ(
      judged(*qp,
             {.operation = work::Operation::send, .inlined = true, .segments = two, .count = 2})
          .rule,
      Rule::none);

  LocalSegment s = two[0];
  s.length = qp->limits().max_inline + 1;
  EXPECT_EQ(
      judged(*qp,
             {.operation = work::Operation::write, .inlined = true, .segments = &s, .count = 1})
          .rule,
      Rule::inline_length);
  s.length = 8;
  EXPECT_EQ(
      judged(*qp, {.operation = work::Operation::read, .inlined = true, .segments = &s, .count = 1})
          .rule,
      Rule::inline_operation);
  s.length = 7;
  const PostFault atomic =
      judged(*qp, {.operation = work::Operation::fetch_add, .segments = &s, .count = 1});
  EXPECT_EQ(atomic.rule, Rule::atomic_length);
  EXPECT_EQ(atomic.asked, 7U);
  EXPECT_EQ(atomic.limit, 8U);
}

// The row of the type decides, and whether each send names its destination.
TEST_F(SendPostingTest, OperationsOfOtherTypes) {
  const AddressHandle handle{};
  const LocalSegment s = two[0];
  for (const QpTypeTraits& type : qp_types()) {
    SCOPED_TRACE(type.name);
    auto qp = make(type.type);
    // Requests are judged before the state is.
    for (int i = 0; i <= static_cast<int>(work::Operation::compare_swap); ++i) {
      const auto operation = static_cast<work::Operation>(i);
      for (const AddressHandle* h : {static_cast<const AddressHandle*>(nullptr), &handle}) {
        const bool fits = type.has(operation) && type.addressed == (h != nullptr);
        EXPECT_EQ(
            judged(*qp, {.operation = operation, .segments = &s, .count = 1, .handle = h}).rule,
            fits ? Rule::state : Rule::operation)
            << i;
      }
    }
    SendPosting posting{*qp};
    EXPECT_FALSE(posting.add_bind({}, 1, true, false).ok());
    EXPECT_EQ(posting.fault().rule,
              type.has(work::Operation::bind_window) ? Rule::state : Rule::operation);
    EXPECT_FALSE(posting.add_local_invalidate(Stag{1}, 1, true, false).ok());
    EXPECT_EQ(posting.fault().rule,
              type.has(work::Operation::local_invalidate) ? Rule::state : Rule::operation);
  }
}

// Of a list, what was not committed is as if it had never been added.
TEST_F(SendPostingTest, WhatIsNotCommittedIsDropped) {
  auto qp = make();
  to_rts(*qp);
  {
    SendPosting posting{*qp};
    ASSERT_TRUE(posting.add({.wr_id = 1, .operation = work::Operation::send}).ok());
    ASSERT_TRUE(posting.add({.wr_id = 2, .operation = work::Operation::send}).ok());
  }
  auto h = qp->engine().hold();
  EXPECT_EQ(qp->send_queue().tail(), 0U);
}

TEST_F(SendPostingTest, AFullQueueTakesNoMore) {
  auto qp = make();
  to_rts(*qp);
  SendPosting posting{*qp};
  for (uint32_t i = 0; i < qp->limits().max_send_wr; ++i) {
    ASSERT_TRUE(posting.add({.wr_id = i, .operation = work::Operation::send}).ok()) << i;
  }
  const auto more = posting.add({.operation = work::Operation::send});
  ASSERT_FALSE(more.ok());
  EXPECT_EQ(more.error(), Errc::no_memory);
  EXPECT_EQ(posting.fault().rule, Rule::full);
  EXPECT_EQ(posting.fault().limit, qp->limits().max_send_wr);
}

// Posting frees what earlier binds have left behind.
TEST_F(SendPostingTest, ManyBindsLeaveLittleBehind) {
  Buffer memory(4096);
  auto region = adapter().memory().add(domain, memory.data(), memory.size(),
                                       reinterpret_cast<uintptr_t>(memory.data()),
                                       access::kLocalWrite | access::kMwBind);
  ASSERT_TRUE(region.ok());
  const auto window = adapter().memory().reserve_window();
  ASSERT_TRUE(window.ok());
  auto qp = make();
  to_rts(*qp);
  connect(*qp);
  Stag stag = window->stag;
  for (int i = 0; i < 3000; ++i) {
    const Stag fresh = MemoryTable::next_key(stag);
    SendPosting posting{*qp};
    ASSERT_TRUE(posting
                    .add_bind({.window = window->id,
                               .old_stag = stag,
                               .fresh_stag = fresh,
                               .lkey = (*region)->stag,
                               .address = reinterpret_cast<uintptr_t>(memory.data()),
                               .length = 100,
                               .access = access::kRemoteRead,
                               .type_2 = false},
                              static_cast<uint64_t>(i), true, false)
                    .ok());
    posting.commit();
    const auto done = poll(cq, 1);
    ASSERT_EQ(done.size(), 1U);
    ASSERT_EQ(done[0].status, Status::success);
    stag = fresh;
  }
  EXPECT_LT(adapter().memory().retired(), 1000U);
  qp.reset();
  adapter().memory().release_window(stag);
  EXPECT_TRUE(adapter().memory().remove(*region).ok());
}

}  // namespace
}  // namespace weft::verbs
