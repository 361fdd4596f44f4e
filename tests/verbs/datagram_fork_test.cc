// fork(2) of a program with UC and UD queue pairs: the child's copies are dead and say so, the
// child may have queue pairs of its own, and the parent's go on (spec/abi 7).
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/sanitizer.h"
#include "tests/verbs/endpoint.h"

namespace weft::test {
namespace {

constexpr size_t kGrh = 40;
constexpr size_t kSize = 3000;
using AhPtr = std::unique_ptr<ibv_ah, Freer<ibv_ah, ibv_destroy_ah>>;

// Two queue pairs of one process that can talk to each other.
struct Two {
  explicit Two(ibv_qp_type kind)
      : ud(kind == IBV_QPT_UD),
        options{.type = kind},
        memory(4 * kSize),
        mr(a.reg(memory.data(), memory.size())),
        cq(a.cq(64)),
        from(make_qp(a, cq.get(), options)),
        to(make_qp(a, cq.get(), options)) {
    const ibv_gid gid = own_gid(a);
    connect(from.get(), gid, to.get(), gid, options);
    if (!ud) return;
    ibv_ah_attr attr{};
    attr.is_global = 1;
    attr.grh.dgid = gid;
    attr.port_num = 1;
    ah.reset(ibv_create_ah(a.pd.get(), &attr));
    check(ah != nullptr, "ibv_create_ah");
  }
  size_t size() const { return ud ? 1000 : kSize; }
  int receive() {
    return post_recv(to.get(), 1, {sge(&memory[2 * kSize], size() + kGrh, mr.get())});
  }
  int send() {
    ibv_send_wr wr{};
    wr.wr_id = 2;
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = IBV_SEND_SIGNALED;
    if (ud) wr.wr.ud = {.ah = ah.get(), .remote_qpn = to->qp_num, .remote_qkey = kQKey};
    return post_send(from.get(), wr, {sge(memory.data(), size(), mr.get())});
  }
  // A message of its own bytes arrives whole.
  bool works(uint8_t seed) {
    for (size_t i = 0; i < size(); ++i) memory[i] = static_cast<uint8_t>(i * 7 + (i >> 8) + seed);
    if (receive() != 0 || send() != 0) return false;
    const auto done = collect(cq.get(), 2);
    if (done.size() != 2) return false;
    for (const ibv_wc& wc : done) {
      if (wc.status != IBV_WC_SUCCESS) return false;
    }
    const size_t behind = ud ? kGrh : 0;
    return std::memcmp(&memory[2 * kSize + behind], memory.data(), size()) == 0;
  }

  const bool ud;
  const QpOptions options;
  Adapter a;
  std::vector<uint8_t> memory;
  MrPtr mr;
  CqPtr cq;
  QpPtr from;
  QpPtr to;
  AhPtr ah;
};

class DatagramFork : public ::testing::TestWithParam<ibv_qp_type> {
 protected:
  void SetUp() override {
#ifdef WEFT_TSAN
    GTEST_SKIP() << "ThreadSanitizer does not let a child of a program with threads start any";
#endif
  }
  // `child` returns the number of the check that failed, or 0.
  template <class Child>
  static int in_child(Child&& child) {
    const pid_t pid = fork();
    if (pid == 0) _exit(child());
    int status = 0;
    EXPECT_EQ(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
};

TEST_P(DatagramFork, the_parents_queue_pairs_are_dead_in_the_child) {
  Two parent{GetParam()};
  ASSERT_TRUE(parent.works(1));
  ASSERT_EQ(parent.receive(), 0);
  const int failed = in_child([&] {
    ibv_wc wc;
    if (parent.send() != EIO) return 1;
    if (parent.receive() != EIO) return 2;
    return ibv_poll_cq(parent.cq.get(), 1, &wc) < 0 ? 0 : 3;
  });
  EXPECT_EQ(failed, 0);
  // Nothing of it was heard of: neither a message nor a goodbye.
  ibv_wc wc;
  EXPECT_EQ(ibv_poll_cq(parent.cq.get(), 1, &wc), 0);
  ASSERT_EQ(parent.send(), 0);
  const auto done = collect(parent.cq.get(), 2);
  ASSERT_EQ(done.size(), 2U);
  for (const ibv_wc& c : done) EXPECT_EQ(c.status, IBV_WC_SUCCESS);
}

TEST_P(DatagramFork, parent_and_child_have_queue_pairs_of_their_own) {
  Two parent{GetParam()};
  ASSERT_TRUE(parent.works(1));
  const int failed = in_child([&] {
    Two own{GetParam()};
    for (uint8_t i = 0; i < 20; ++i) {
      if (!own.works(i)) return 1 + i;
    }
    return 0;
  });
  EXPECT_EQ(failed, 0);
  for (uint8_t i = 0; i < 20; ++i) EXPECT_TRUE(parent.works(i)) << int{i};
}

INSTANTIATE_TEST_SUITE_P(Types, DatagramFork, ::testing::Values(IBV_QPT_UC, IBV_QPT_UD),
                         [](const auto& type) { return type.param == IBV_QPT_UC ? "uc" : "ud"; });

}  // namespace
}  // namespace weft::test
