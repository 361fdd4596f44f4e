// A program with a real-time priority that spins on its memory: what peers write and read is served
// all the same, on the processor of that very thread.

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "tests/support/scheduling.h"
#include "tests/verbs/endpoint.h"
#include "tests/verbs/peer_process.h"

namespace weft::test {
namespace {

// Places in the peer's memory.
enum Place : size_t { kGo, kSpins, kStop, kStopped, kPlaces };

void one_processor_and_real_time() {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<size_t>(sched_getcpu()), &set);
  check(sched_setaffinity(0, sizeof set, &set) == 0, "sched_setaffinity");
  check(become_fifo(50), "SCHED_FIFO");
}

// The helpers of the peer, which are all its other threads, keep to the processor as well, as under
// taskset(1). They have their names once they have chosen for themselves.
void keep_helpers_here() {
  cpu_set_t own;
  check(sched_getaffinity(0, sizeof own, &own) == 0, "sched_getaffinity");
  for (const auto& [id, _] : threads()) {
    if (id == getpid()) continue;
    check(comes_true([id = id] { return threads()[id].starts_with("weft/"); }), "a helper's name");
    check(sched_setaffinity(id, sizeof own, &own) == 0, "sched_setaffinity");
  }
}

void spin_on_memory(ibv_qp*, const ibv_mr* mr) {
  keep_helpers_here();
  std::thread([places = static_cast<volatile uint8_t*>(mr->addr)] {
    while (places[kGo] != 1) std::this_thread::sleep_for(std::chrono::milliseconds{1});
    places[kSpins] = 1;
    const auto last = std::chrono::steady_clock::now() + std::chrono::seconds{20};
    while (places[kStop] != 1) {
      if (std::chrono::steady_clock::now() > last) _exit(1);
    }
    places[kStopped] = 1;
  }).detach();
}

TEST(RealTimeProgram, is_served_while_it_spins_on_memory) {
  if (!real_time_is_allowed()) GTEST_SKIP() << "no real-time priorities are allowed here";
  PeerProcess peer(spin_on_memory, {}, one_processor_and_real_time);
  const Adapter a;
  const CqPtr cq = a.cq(16);
  const QpPtr qp = make_qp(a, cq.get());
  uint8_t local[kPlaces] = {};
  const MrPtr mr = a.reg(local, sizeof local);
  const PeerCard card = peer.connect_to(qp.get(), own_gid(a));
  const auto transfer = [&](ibv_wr_opcode opcode, Place place) {
    ibv_send_wr wr{};
    wr.opcode = opcode;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.rdma.remote_addr = card.address + place;
    wr.wr.rdma.rkey = card.rkey;
    check_errno(post_send(qp.get(), wr, {sge(local + place, 1, mr.get())}), "ibv_post_send");
    const auto done = collect(cq.get(), 1);
    return done.size() == 1 && done[0].status == IBV_WC_SUCCESS;
  };
  const auto becomes_one = [&](Place place) {
    bool served = true;
    local[place] = 0;
    return comes_true([&] {
             served = served && transfer(IBV_WR_RDMA_READ, place);
             return !served || local[place] == 1;
           }) &&
           served;
  };
  // The places begin with other values than these.
  local[kGo] = local[kStop] = 1;
  ASSERT_TRUE(transfer(IBV_WR_RDMA_WRITE, kGo));
  ASSERT_TRUE(becomes_one(kSpins));
  ASSERT_TRUE(transfer(IBV_WR_RDMA_WRITE, kStop));
  EXPECT_TRUE(becomes_one(kStopped));
}

// A child of fork(2) has helpers of its own, though its parent's had learned the priority before.
TEST(RealTimeProgram, a_child_of_it_is_served_as_well) {
  constexpr int kPriority = 10;
  if (!real_time_is_allowed()) GTEST_SKIP() << "no real-time priorities are allowed here";
  // The thread gets its priority when the helper is there, and gives it back.
  const auto polls = [] {
    const Adapter a;
    const CqPtr cq = a.cq(4);
    if (!become_fifo(kPriority)) return false;
    ibv_wc none;
    for (int i = 0; i < 5; ++i) (void)ibv_poll_cq(cq.get(), 1, &none);
    const auto helper = thread_called("weft/0");
    const sched_param ordinary{};
    return ::sched_setscheduler(0, SCHED_OTHER, &ordinary) == 0 && helper &&
           has_real_time_priority(*helper, kPriority + 1);
  };
  const auto ends_well = [](pid_t child) {
    int status = 0;
    return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  };
  const pid_t parent = fork();
  if (parent == 0) {
    if (!polls()) _exit(1);
    const pid_t child = fork();
    if (child == 0) _exit(polls() ? 0 : 1);
    _exit(ends_well(child) ? 0 : 2);
  }
  EXPECT_TRUE(ends_well(parent));
}

}  // namespace
}  // namespace weft::test
