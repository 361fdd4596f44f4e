// A program whose `delete` waits for a lock that it also holds where it deregisters memory, as
// MVAPICH2's `free` does.
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <new>
#include <thread>

#include "tests/abi/api_fixture.h"

namespace {

std::timed_mutex g_lock;
std::atomic<bool> g_armed = false;
std::atomic<bool> g_in_vain = false;
thread_local bool g_has_it = false;

// Where the lock's owner waits for this thread, neither goes on. This one gives up at last.
void free_block(void* block) {
  if (g_armed && !g_has_it) {
    using namespace std::chrono_literals;
    if (g_lock.try_lock_for(10s)) {
      g_lock.unlock();
    } else {
      g_in_vain = true;
    }
  }
  std::free(block);
}

}  // namespace

void* operator new(size_t size) {
  if (void* block = std::malloc(size)) return block;
  throw std::bad_alloc{};
}
void* operator new(size_t size, const std::nothrow_t&) noexcept {
  return std::malloc(size);
}
void* operator new[](size_t size) {
  return ::operator new(size);
}
void operator delete(void* block) noexcept {
  free_block(block);
}
void operator delete(void* block, size_t) noexcept {
  free_block(block);
}
void operator delete[](void* block) noexcept {
  free_block(block);
}
void operator delete[](void* block, size_t) noexcept {
  free_block(block);
}

namespace weft::test {
namespace {

using FreeOfProgram = DeviceTest;

// Streams are freed by who holds their engine: the program in ibv_destroy_qp, or the helper.
TEST_F(FreeOfProgram, IsNeverCalledByWhoHoldsAnEngine) {
  std::atomic<bool> stop = false;
  std::atomic<int> taken_back = 0;
  std::vector<std::byte> memory(4096);
  g_armed = true;
  std::thread other{[&] {
    while (!stop && !g_in_vain) {
      ibv_mr* mr = ibv_reg_mr(pd.get(), memory.data(), memory.size(), 0);
      ASSERT_NE(mr, nullptr);
      g_lock.lock();
      g_has_it = true;
      EXPECT_EQ(ibv_dereg_mr(mr), 0);
      g_has_it = false;
      g_lock.unlock();
      ++taken_back;
    }
  }};
  for (int round = 0; (round < 50 || taken_back < 50) && !g_in_vain; ++round) {
    const Owned<ibv_cq> cq{ibv_create_cq(context.get(), 4, nullptr, nullptr, 0)};
    ibv_qp_init_attr attr = rc_attributes(cq.get());
    const Owned<ibv_qp> qp{ibv_create_qp(pd.get(), &attr)};
    ASSERT_EQ(to_init(qp.get()), 0);
    ASSERT_EQ(to_rtr(qp.get(), qp->qp_num), 0);
    ASSERT_EQ(to_rts(qp.get()), 0);
    ibv_send_wr wr{};
    wr.opcode = IBV_WR_RDMA_WRITE;
    wr.send_flags = IBV_SEND_SIGNALED;
    ibv_send_wr* bad = nullptr;
    ASSERT_EQ(ibv_post_send(qp.get(), &wr, &bad), 0);
    ASSERT_EQ(next_completion(cq.get()).status, IBV_WC_SUCCESS);
  }
  stop = true;
  other.join();
  g_armed = false;
  EXPECT_FALSE(g_in_vain) << "a thread that held an engine waited for the program";
  EXPECT_GE(taken_back, 50);
}

}  // namespace
}  // namespace weft::test
