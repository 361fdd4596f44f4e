// RC over UDP (spec/wdp-rd 7) where it differs from RC over TCP: what a connection costs its
// process.

#include <dirent.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/resource.h>

#include <iostream>

#include "tests/verbs/endpoint.h"
#include "tests/verbs/own_process.h"

namespace weft::test {
namespace {

size_t heap() {
  const struct mallinfo2 m = mallinfo2();
  return m.uordblks + m.hblkhd;
}

size_t descriptors() {
  size_t n = 0;
  DIR* const d = opendir("/proc/self/fd");
  check(d != nullptr, "opendir");
  while (readdir(d) != nullptr) ++n;
  closedir(d);
  return n;
}

void write(ibv_qp* qp, const ibv_mr* from, const ibv_mr* to, size_t i) {
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_RDMA_WRITE;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.wr.rdma.remote_addr = reinterpret_cast<uintptr_t>(to->addr) + i * 8;
  wr.wr.rdma.rkey = to->rkey;
  check_errno(post_send(qp, wr, {sge(static_cast<uint64_t*>(from->addr) + i, 8, from)}),
              "ibv_post_send");
}

void wait_for(ibv_cq* cq, size_t count) {
  for (const ibv_wc& wc : collect(cq, count)) {
    check(wc.status == IBV_WC_SUCCESS, ibv_wc_status_str(wc.status));
    --count;
  }
  check(count == 0, "a completion each");
}

// Two ends each; all of them are connected at the same time, and carry data.
void connect_many(size_t pairs, size_t most_descriptors, size_t most_memory) {
  const rlimit limit{most_descriptors, most_descriptors};
  check(setrlimit(RLIMIT_NOFILE, &limit) == 0, "setrlimit");
  const Adapter adapter;
  const ibv_gid gid = own_gid(adapter);
  std::vector<uint64_t> source(pairs);
  std::vector<uint64_t> target(pairs);
  for (size_t i = 0; i < pairs; ++i) source[i] = i * 0x9e3779b97f4a7c15U + 1;
  const MrPtr from = adapter.reg(source.data(), pairs * 8);
  const MrPtr to = adapter.reg(target.data(), pairs * 8);
  const CqPtr cq = adapter.cq(static_cast<int>(pairs));
  std::vector<QpPtr> a;
  std::vector<QpPtr> b;
  for (size_t i = 0; i < pairs; ++i) {
    a.push_back(make_qp(adapter, cq.get(), {.depth = 8}));
    b.push_back(make_qp(adapter, cq.get(), {.depth = 8}));
  }
  const size_t before = heap();
  for (size_t i = 0; i < pairs; ++i) {
    connect(a[i].get(), gid, b[i].get(), gid);
    // Over UDP from then on.
    write(a[i].get(), from.get(), to.get(), i);
    wait_for(cq.get(), 1);
  }
  check(source == target, "all have come");
  const size_t each = (heap() - before) / (2 * pairs);
  std::cerr << 2 * pairs << " connected queue pairs: " << descriptors() << " descriptors, " << each
            << " bytes of heap for each connection's end\n";
  check(each <= most_memory, "memory of a connection");
  for (size_t i = 0; i < pairs; ++i) source[i] = ~source[i];
  for (size_t i = 0; i < pairs; ++i) write(a[i].get(), from.get(), to.get(), i);
  wait_for(cq.get(), pairs);
  check(source == target, "all have come again");
}

class RcByUdp : public testing::Test {
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(RcByUdp, ten_thousand_connected_queue_pairs_need_few_descriptors) {
  EXPECT_EXIT(with({{"WEFT_RC", "udp"}}, [] { connect_many(5000, 256, 2048); }),
              ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace weft::test
