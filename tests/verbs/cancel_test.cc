// A thread that is cancelled (pthread_cancel(3)) in the middle of a call leaves nothing behind in
// the middle: the connection is closed, and others can hold its engine.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>

#include "tests/support/rc_way.h"
#include "tests/verbs/endpoint.h"

namespace weft::test {
namespace {

// Without a cancellation point.
int open_files() {
  int n = 0;
  for (int fd = 0; fd < 4096; ++fd) n += ::fcntl(fd, F_GETFD) >= 0 ? 1 : 0;
  return n;
}

TEST(Cancelled, a_thread_ends_its_connection_whole) {
  const Adapter a;
  std::vector<uint8_t> memory(2000);
  const MrPtr mr = a.reg(memory.data(), memory.size());
  const CqPtr cq = a.cq(16);
  QpPtr here = make_qp(a, cq.get());
  QpPtr there = make_qp(a, cq.get());
  connect(here.get(), own_gid(a), there.get(), own_gid(a));
  for (ibv_qp* qp : {here.get(), there.get()}) {
    check_errno(post_recv(qp, 1, {sge(memory.data(), 1000, mr.get())}), "post_recv");
  }
  // Both are connected for certain.
  for (size_t i = 0; i < 100; ++i) memory[1000 + i] = static_cast<uint8_t>(i * 7 + 1);
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_SEND;
  wr.send_flags = IBV_SEND_SIGNALED;
  check_errno(post_send(here.get(), wr, {sge(&memory[1000], 100, mr.get())}), "post_send");
  ASSERT_EQ(collect(cq.get(), 2).size(), 2U);
  EXPECT_EQ(std::memcmp(memory.data(), &memory[1000], 100), 0);
  const int connected = open_files();
  const int sockets = rc_by_udp() ? 0 : 2;
  std::atomic<bool> flushed{false};
  std::atomic<bool> closed{false};
  std::thread{[&] {
    ::pthread_cancel(::pthread_self());
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_ERR;
    check_errno(ibv_modify_qp(here.get(), &attr, IBV_QP_STATE), "ERR");
    const auto done = collect(cq.get(), 1);
    flushed = done.size() == 1 && done[0].status == IBV_WC_WR_FLUSH_ERR;
    // The other side finds out, and both sockets are closed.
    here.reset();
    there.reset();
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds{10};
    ibv_wc none;
    while (!closed && std::chrono::steady_clock::now() < until) {
      ibv_poll_cq(cq.get(), 1, &none);
      closed = open_files() <= connected - sockets;
    }
    ::pthread_testcancel();
    ADD_FAILURE() << "it was not cancelled";
  }}.join();
  EXPECT_TRUE(flushed);
  EXPECT_TRUE(closed);
  // The engine is anybody's: two others can be connected.
  const QpPtr one = make_qp(a, cq.get());
  const QpPtr other = make_qp(a, cq.get());
  connect(one.get(), own_gid(a), other.get(), own_gid(a));
  check_errno(post_recv(other.get(), 2, {sge(memory.data(), 1000, mr.get())}), "post_recv");
  check_errno(post_send(one.get(), wr, {sge(&memory[1000], 100, mr.get())}), "post_send");
  for (const ibv_wc& wc : collect(cq.get(), 2)) EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
}

// What weft does while a connection comes up has no cancellation point either.
TEST(Cancelled, a_thread_connects_before_it_ends) {
  constexpr int kPairs = 20;
  const Adapter a;
  std::vector<uint8_t> memory(200);
  for (size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<uint8_t>(i * 7 + 1);
  const MrPtr mr = a.reg(memory.data(), memory.size());
  const CqPtr cq = a.cq(4 * kPairs);
  std::vector<QpPtr> pairs;
  for (int i = 0; i < 2 * kPairs; ++i) pairs.push_back(make_qp(a, cq.get()));
  bool all_came = false;
  std::thread{[&] {
    ::pthread_cancel(::pthread_self());
    ibv_send_wr wr{};
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = IBV_SEND_SIGNALED;
    for (size_t i = 0; i < pairs.size(); i += 2) {
      connect(pairs[i].get(), own_gid(a), pairs[i + 1].get(), own_gid(a));
      check_errno(post_recv(pairs[i + 1].get(), 1, {sge(memory.data(), 100, mr.get())}), "recv");
      check_errno(post_send(pairs[i].get(), wr, {sge(&memory[100], 100, mr.get())}), "send");
    }
    const auto done = collect(cq.get(), 2 * kPairs);
    all_came = done.size() == 2 * kPairs &&
               std::all_of(done.begin(), done.end(),
                           [](const ibv_wc& wc) { return wc.status == IBV_WC_SUCCESS; });
    ::pthread_testcancel();
    ADD_FAILURE() << "it was not cancelled";
  }}.join();
  EXPECT_TRUE(all_came);
  EXPECT_EQ(std::memcmp(memory.data(), &memory[100], 100), 0);
}

}  // namespace
}  // namespace weft::test
