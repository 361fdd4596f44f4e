// Many queue pairs: a thousand at once, and thousands one after the other; nothing is left behind.

#include <dirent.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <fstream>
#include <set>

#include "tests/verbs/endpoint.h"

namespace weft::test {
namespace {

size_t entries(const char* directory) {
  size_t n = 0;
  DIR* d = opendir(directory);
  while (readdir(d) != nullptr) ++n;
  closedir(d);
  return n;
}

void raise_limit() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

void write_once(ibv_qp* qp, ibv_cq* cq, const ibv_mr* from, const ibv_mr* to, size_t offset) {
  ibv_send_wr wr{};
  wr.wr_id = qp->qp_num;
  wr.opcode = IBV_WR_RDMA_WRITE;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.wr.rdma.remote_addr = reinterpret_cast<uintptr_t>(to->addr) + offset;
  wr.wr.rdma.rkey = to->rkey;
  ASSERT_EQ(post_send(qp, wr, {sge(static_cast<char*>(from->addr) + offset, 8, from)}), 0);
  (void)cq;
}

TEST(ManyPairs, a_thousand_at_once_carry_data) {
  raise_limit();
  const Adapter adapter;
  constexpr size_t kPairs = 500;  // a thousand queue pairs, both ends here
  std::vector<uint64_t> source(kPairs);
  std::vector<uint64_t> target(kPairs);
  for (size_t i = 0; i < kPairs; ++i) source[i] = i * 0x9e3779b97f4a7c15U + 1;
  const MrPtr from = adapter.reg(source.data(), kPairs * 8);
  const MrPtr to = adapter.reg(target.data(), kPairs * 8);
  const CqPtr cq = adapter.cq(4096);
  std::vector<QpPtr> a;
  std::vector<QpPtr> b;
  std::set<uint32_t> numbers;
  for (size_t i = 0; i < kPairs; ++i) {
    a.push_back(make_qp(adapter, cq.get(), {.depth = 8}));
    b.push_back(make_qp(adapter, cq.get(), {.depth = 8}));
    numbers.insert(a.back()->qp_num);
    numbers.insert(b.back()->qp_num);
    connect(a[i].get(), own_gid(adapter), b[i].get(), own_gid(adapter));
    write_once(a[i].get(), cq.get(), from.get(), to.get(), i * 8);
  }
  EXPECT_EQ(numbers.size(), 2 * kPairs);
  const auto done = collect(cq.get(), kPairs);
  ASSERT_EQ(done.size(), kPairs);
  for (const ibv_wc& wc : done) EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  EXPECT_EQ(source, target);
}

TEST(ManyPairs, ten_thousand_connections_leave_nothing_behind) {
  raise_limit();
  const Adapter adapter;
  std::vector<uint64_t> source(1, 0x0123456789abcdefU);
  std::vector<uint64_t> target(1);
  const MrPtr from = adapter.reg(source.data(), 8);
  const MrPtr to = adapter.reg(target.data(), 8);
  const CqPtr cq = adapter.cq(64);
  std::set<uint32_t> ports;
  const auto once = [&] {
    const QpPtr a = make_qp(adapter, cq.get(), {.depth = 8});
    const QpPtr b = make_qp(adapter, cq.get(), {.depth = 8});
    ports.insert(a->qp_num >> 8);
    ports.insert(b->qp_num >> 8);
    connect(a.get(), own_gid(adapter), b.get(), own_gid(adapter));
    target[0] = 0;
    write_once(a.get(), cq.get(), from.get(), to.get(), 0);
    const auto done = collect(cq.get(), 1);
    ASSERT_EQ(done.size(), 1U);
    ASSERT_EQ(done[0].status, IBV_WC_SUCCESS);
    ASSERT_EQ(target[0], source[0]);
  };
  // A port stays with the process, with a socket for TCP and one for UDP; numbers rest for two
  // seconds, so there are more of them the faster pairs come and go (spec/addressing 2.3).
  const auto beside_ports = [&] { return entries("/proc/self/fd") - 2 * ports.size(); };
  for (int i = 0; i < 300; ++i) once();
  const size_t fds = beside_ports();
  const size_t threads = entries("/proc/self/task");
  for (int i = 0; i < 10'000; ++i) once();
  // A closed connection may wait for its peer's FIN.
  EXPECT_LE(beside_ports(), fds + 4);
  EXPECT_EQ(entries("/proc/self/task"), threads);
}

}  // namespace
}  // namespace weft::test
