#include "sdp/rdma/locked_member.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <thread>

#include "tests/unit/sdp_rdma/fake_adapter.h"

namespace weft::sdp {
namespace {

using How = Completions::How;
using testing::FakeAdapter;

class Member final : public LockedMember {
 public:
  ~Member() override = default;
  bool process_mail() override {
    if (!open) return false;
    while (!mail_.empty() && processed < most) mail_.take(), ++processed;
    if (refilled) mail_.put({}), ++most;
    errno = EAGAIN;
    return true;
  }
  void before_unlock() override {
    ++let_go;
    errno = EAGAIN;
  }
  bool put_off_mail() override { return ++put_off > 0; }
  bool has_mail() const { return !mail_.empty(); }

  bool open = true;
  bool refilled = false;
  int most = INT_MAX;
  int put_off = 0;
  int processed = 0;  // with the lock
  int let_go = 0;
};

class MailUnderALock : public ::testing::Test {
 protected:
  void SetUp() override {
    queue = completions.join(member, &adapter.device, 160);
    ASSERT_NE(queue, nullptr);
  }
  void TearDown() override { completions.leave(member); }
  void complete() {
    ibv_wc wc{};
    wc.wr_id = Completions::work_id(member, 0, 0);
    ASSERT_TRUE(FakeAdapter::of(queue).complete(wc));
    completions.take(How::surely);
  }

  FakeAdapter adapter;
  Completions completions{adapter};
  Member member;
  ibv_cq* queue = nullptr;
};

TEST_F(MailUnderALock, IsProcessedAtOnceWhereTheLockIsFree) {
  complete();
  EXPECT_EQ(member.processed, 1);
  EXPECT_EQ(member.let_go, 1);
}

TEST_F(MailUnderALock, IsProcessedByWhoeverHasTheLock) {
  {
    const std::lock_guard holding{member.lock};
    std::thread{[this] { complete(); }}.join();
    EXPECT_EQ(member.processed, 0);
  }
  EXPECT_EQ(member.processed, 1);
  EXPECT_EQ(member.let_go, 2) << "once by the holder, once for the mail";
}

TEST_F(MailUnderALock, LeavesTheErrnoOfTheCallThatLetsGo) {
  {
    const std::lock_guard holding{member.lock};
    std::thread{[this] { complete(); }}.join();
    errno = EINTR;
  }
  EXPECT_EQ(errno, EINTR);
  EXPECT_EQ(member.processed, 1);
}

TEST_F(MailUnderALock, StaysUntilItCanBeProcessed) {
  member.open = false;
  complete();
  EXPECT_TRUE(member.has_mail());
  {
    const std::lock_guard holding{member.lock};
    member.open = true;
  }
  EXPECT_EQ(member.processed, 1);
}

TEST_F(MailUnderALock, IsLeftToAnotherThreadWhereItComesAsFastAsItIsProcessed) {
  member.most = 1;
  member.refilled = true;
  complete();
  EXPECT_EQ(member.put_off, 1);
  EXPECT_GT(member.processed, 1);
  EXPECT_TRUE(member.has_mail());
  member.refilled = false;
  member.most = INT_MAX;
  { const std::lock_guard holding{member.lock}; }
  EXPECT_FALSE(member.has_mail()) << "the other thread has processed it";
}

TEST_F(MailUnderALock, IsNeverLeftBehind) {
  constexpr int kCount = 20'000;
  std::atomic<bool> ended{false};
  std::thread other{[&] {
    for (int i = 0; i < kCount; ++i) {
      const std::lock_guard holding{member.lock};
    }
    ended = true;
  }};
  for (int i = 0; i < kCount; ++i) {
    complete();
    // It is the other thread's to process, if it is not this one's.
    while (member.has_mail() && !ended) std::this_thread::yield();
  }
  other.join();
  EXPECT_EQ(member.processed, kCount);
}

}  // namespace
}  // namespace weft::sdp
