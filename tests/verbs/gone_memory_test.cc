// Registered memory that the program has unmapped, truncated or protected (docs/design/06): whoever
// reaches for it, here or from the peer, gets an error completion, and no process ends.

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <csignal>
#include <utility>

#include "tests/verbs/endpoint.h"
#include "tests/verbs/own_process.h"

namespace weft::test {
namespace {

constexpr size_t kMemory = 1 << 20;
constexpr size_t kGrh = 40;

enum class Loss : uint8_t { unmapped, no_access, read_only, truncated };
constexpr const char* kNames[] = {"Unmapped", "NoAccess", "ReadOnly", "Truncated"};

// Memory that goes away while it is registered.
class Passing {
 public:
  explicit Passing(const Adapter& a) : file_(memfd_create("passing", MFD_CLOEXEC)) {
    check(ftruncate(file_, kMemory) == 0, "ftruncate");
    void* const all =
        mmap(nullptr, kMemory + kDecoy, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    check(all != MAP_FAILED, "mmap");
    begin = static_cast<uint8_t*>(
        mmap(all, kMemory, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file_, 0));
    check(begin == all, "mmap");
    for (size_t i = 0; i < kMemory; ++i) begin[i] = static_cast<uint8_t>(i * 3 + (i >> 8));
    mr = a.reg(begin, kMemory);
  }
  ~Passing() {
    mr.reset();
    if (!unmapped_) munmap(begin, kMemory + kDecoy);
    close(file_);
  }
  Passing(Passing&) = delete;
  Passing& operator=(Passing&) = delete;

  void go(Loss loss) {
    switch (loss) {
      case Loss::unmapped:
        unmapped_ = true;
        check(munmap(begin, kMemory + kDecoy) == 0, "munmap");
        break;
      case Loss::no_access:
        check(mprotect(begin, kMemory, PROT_NONE) == 0, "mprotect");
        break;
      case Loss::read_only:
        check(mprotect(begin, kMemory, PROT_READ) == 0, "mprotect");
        break;
      case Loss::truncated:
        check(ftruncate(file_, 0) == 0, "ftruncate");
        break;
    }
  }

  uint8_t* begin = nullptr;
  MrPtr mr;

 private:
  // Right above the memory: the kernel gives out the highest addresses first, and what is mapped
  // later comes to stand here when both are unmapped.
  static constexpr size_t kDecoy = 16 << 20;
  int file_;
  bool unmapped_ = false;
};

// A sanitizer's handler would take a fault for its own.
struct NoHandlers {
  NoHandlers() {
    (void)signal(SIGSEGV, SIG_DFL);
    (void)signal(SIGBUS, SIG_DFL);
  }
};

struct Party : NoHandlers {
  explicit Party(ibv_qp_type type) : qp(make_qp(a, cq.get(), {.type = type})) {
    for (size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<uint8_t>(i * 7 + (i >> 8));
  }
  ibv_wc_status status() {
    const auto done = collect(cq.get(), 1);
    check(done.size() == 1, "a completion");
    return done[0].status;
  }
  // One that has waited already, or comes.
  bool event(ibv_event_type type) {
    pollfd p{.fd = a.context->async_fd, .events = POLLIN, .revents = 0};
    while (::poll(&p, 1, 10'000) == 1) {
      ibv_async_event e{};
      check(ibv_get_async_event(a.context.get(), &e) == 0, "ibv_get_async_event");
      ibv_ack_async_event(&e);
      if (e.event_type == type) return true;
    }
    return false;
  }

  const Adapter a;
  std::vector<uint8_t> memory = std::vector<uint8_t>(kMemory);
  const MrPtr mr = a.reg(memory.data(), memory.size());
  const CqPtr cq = a.cq(64);
  const QpPtr qp;
};

struct Pair {
  explicit Pair(ibv_qp_type type) : near(type), far(type) {
    if (type != IBV_QPT_UD) {
      connect(near.qp.get(), own_gid(near.a), far.qp.get(), own_gid(far.a), {.type = type});
      return;
    }
    for (Party* p : {&near, &far}) {
      to_rtr(p->qp.get(), 0, {});
      to_rts(p->qp.get());
    }
    ibv_ah_attr attr{};
    attr.is_global = 1;
    attr.grh.dgid = own_gid(far.a);
    attr.port_num = 1;
    to_far.reset(ibv_create_ah(near.a.pd.get(), &attr));
  }
  // From local memory `from` with `lkey`, to or from `to` of the far side.
  void post(ibv_wr_opcode opcode, ibv_sge from, const void* to = nullptr, uint32_t rkey = 0) {
    ibv_send_wr wr{};
    wr.opcode = opcode;
    wr.send_flags = IBV_SEND_SIGNALED;
    if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
      wr.wr.atomic = {reinterpret_cast<uintptr_t>(to), 1, 0, rkey};
    } else if (to_far != nullptr) {
      wr.wr.ud = {.ah = to_far.get(), .remote_qpn = far.qp->qp_num, .remote_qkey = kQKey};
    } else {
      wr.wr.rdma = {reinterpret_cast<uintptr_t>(to), rkey};
    }
    check_errno(post_send(near.qp.get(), wr, {from}), "ibv_post_send");
  }
  ibv_sge good(size_t n) const { return sge(near.memory.data(), n, near.mr.get()); }

  Party near;
  Party far;
  std::unique_ptr<ibv_ah, Freer<ibv_ah, ibv_destroy_ah>> to_far;
};

void expect(ibv_wc_status seen, ibv_wc_status wanted, const std::string& what) {
  EXPECT_EQ(seen, wanted) << what << ": " << ibv_wc_status_str(seen);
}

// What each kind of access ends with. `sizes` of messages.
void everything_on_rc(Loss loss, std::vector<size_t> sizes, bool crc) {
  const bool readable = loss == Loss::read_only;
  for (const size_t n : sizes) {
    const std::string of =
        std::string(kNames[static_cast<size_t>(loss)]) + ", " + std::to_string(n);
    {
      Pair p(IBV_QPT_RC);
      Passing target(p.far.a);
      target.go(loss);
      p.post(IBV_WR_RDMA_WRITE, p.good(n), target.begin, target.mr->rkey);
      expect(p.near.status(), IBV_WC_REM_ACCESS_ERR, "Write to it, " + of);
      EXPECT_TRUE(p.far.event(IBV_EVENT_QP_ACCESS_ERR)) << of;
    }
    {
      Pair p(IBV_QPT_RC);
      Passing source(p.far.a);
      source.go(loss);
      p.post(IBV_WR_RDMA_READ, p.good(n), source.begin, source.mr->rkey);
      const ibv_wc_status seen = p.near.status();
      if (crc || n < 4096) {
        expect(seen, readable ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR, "Read of it, " + of);
      } else {
        // Without CRC the kernel is what misses it, in the middle of an FPDU.
        EXPECT_EQ(seen == IBV_WC_SUCCESS, readable) << of;
      }
    }
    for (const ibv_wr_opcode opcode : {IBV_WR_RDMA_WRITE, IBV_WR_SEND}) {
      Pair p(IBV_QPT_RC);
      Passing source(p.near.a);
      source.go(loss);
      check_errno(post_recv(p.far.qp.get(), 1, {sge(p.far.memory.data(), n, p.far.mr.get())}),
                  "ibv_post_recv");
      p.post(opcode, sge(source.begin, n, source.mr.get()), p.far.memory.data(), p.far.mr->rkey);
      expect(p.near.status(), readable ? IBV_WC_SUCCESS : IBV_WC_LOC_PROT_ERR, "from it, " + of);
    }
    {
      Pair p(IBV_QPT_RC);
      Passing target(p.far.a);
      target.go(loss);
      check_errno(post_recv(p.far.qp.get(), 1, {sge(target.begin, n, target.mr.get())}),
                  "ibv_post_recv");
      p.post(IBV_WR_SEND, p.good(n));
      expect(p.far.status(), IBV_WC_LOC_PROT_ERR, "receive into it, " + of);
      expect(p.near.status(), IBV_WC_REM_OP_ERR, "Send to such a receive, " + of);
    }
    {
      // The message waits for its receive.
      Pair p(IBV_QPT_RC);
      Passing target(p.far.a);
      p.post(IBV_WR_SEND, p.good(n));
      check_errno(post_recv(p.far.qp.get(), 1, {sge(target.begin, n, target.mr.get())}),
                  "ibv_post_recv");
      (void)p.far.status();
      p.near.status();
      p.post(IBV_WR_SEND, p.good(n));
      pollfd nothing{};
      ibv_wc wc;
      for (int i = 0; i < 20; ++i) {
        (void)ibv_poll_cq(p.far.cq.get(), 1, &wc);  // lets it arrive
        (void)::poll(&nothing, 0, 1);
      }
      target.go(loss);
      check_errno(post_recv(p.far.qp.get(), 1, {sge(target.begin, n, target.mr.get())}),
                  "ibv_post_recv");
      expect(p.far.status(), IBV_WC_LOC_PROT_ERR, "late receive into it, " + of);
      expect(p.near.status(), IBV_WC_REM_OP_ERR, "Send to such a receive, " + of);
    }
    {
      Pair p(IBV_QPT_RC);
      Passing sink(p.near.a);
      sink.go(loss);
      p.post(IBV_WR_RDMA_READ, sge(sink.begin, n, sink.mr.get()), p.far.memory.data(),
             p.far.mr->rkey);
      expect(p.near.status(), IBV_WC_LOC_PROT_ERR, "Read into it, " + of);
    }
  }
  {
    Pair p(IBV_QPT_RC);
    Passing target(p.far.a);
    target.go(loss);
    p.post(IBV_WR_ATOMIC_FETCH_AND_ADD, p.good(8), target.begin, target.mr->rkey);
    expect(p.near.status(), IBV_WC_REM_ACCESS_ERR, "atomic");
  }
  Pair p(IBV_QPT_RC);
  Passing sink(p.near.a);
  sink.go(loss);
  p.post(IBV_WR_ATOMIC_FETCH_AND_ADD, sge(sink.begin, 8, sink.mr.get()), p.far.memory.data(),
         p.far.mr->rkey);
  expect(p.near.status(), IBV_WC_LOC_PROT_ERR, "atomic into it");
}

// Nothing ends there: of UC the peer may do what it does.
void everything_on_uc(Loss loss, std::vector<size_t> sizes) {
  const bool readable = loss == Loss::read_only;
  for (const size_t n : sizes) {
    const std::string of =
        std::string(kNames[static_cast<size_t>(loss)]) + ", " + std::to_string(n);
    {
      Pair p(IBV_QPT_UC);
      Passing target(p.far.a);
      target.go(loss);
      p.post(IBV_WR_RDMA_WRITE, p.good(n), target.begin, target.mr->rkey);
      expect(p.near.status(), IBV_WC_SUCCESS, "Write to it, " + of);
      EXPECT_TRUE(p.near.event(IBV_EVENT_QP_ACCESS_ERR)) << of;
    }
    {
      Pair p(IBV_QPT_UC);
      Passing source(p.far.a);
      source.go(loss);
      p.post(IBV_WR_RDMA_READ, p.good(n), source.begin, source.mr->rkey);
      expect(p.near.status(), readable ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR,
             "Read of it, " + of);
    }
    {
      Pair p(IBV_QPT_UC);
      Passing source(p.near.a);
      source.go(loss);
      p.post(IBV_WR_SEND, sge(source.begin, n, source.mr.get()));
      expect(p.near.status(), readable ? IBV_WC_SUCCESS : IBV_WC_LOC_PROT_ERR, "from it, " + of);
    }
    {
      Pair p(IBV_QPT_UC);
      Passing target(p.far.a);
      target.go(loss);
      check_errno(post_recv(p.far.qp.get(), 1, {sge(target.begin, n, target.mr.get())}),
                  "ibv_post_recv");
      p.post(IBV_WR_SEND, p.good(n));
      expect(p.near.status(), IBV_WC_SUCCESS, "Send to such a receive, " + of);
      expect(p.far.status(), IBV_WC_LOC_PROT_ERR, "receive into it, " + of);
    }
    {
      Pair p(IBV_QPT_UC);
      Passing sink(p.near.a);
      sink.go(loss);
      p.post(IBV_WR_RDMA_READ, sge(sink.begin, n, sink.mr.get()), p.far.memory.data(),
             p.far.mr->rkey);
      expect(p.near.status(), IBV_WC_LOC_PROT_ERR, "Read into it, " + of);
    }
  }
}

void everything_on_ud(Loss loss) {
  const bool readable = loss == Loss::read_only;
  // No path carries less than 1024 bytes of UD.
  for (const size_t n : {64, 1024}) {
    const std::string of =
        std::string(kNames[static_cast<size_t>(loss)]) + ", " + std::to_string(n);
    {
      Pair p(IBV_QPT_UD);
      Passing source(p.near.a);
      source.go(loss);
      p.post(IBV_WR_SEND, sge(source.begin, n, source.mr.get()));
      expect(p.near.status(), readable ? IBV_WC_SUCCESS : IBV_WC_LOC_PROT_ERR, "from it, " + of);
    }
    Pair p(IBV_QPT_UD);
    Passing target(p.far.a);
    target.go(loss);
    check_errno(post_recv(p.far.qp.get(), 1, {sge(target.begin, kGrh + n, target.mr.get())}),
                "ibv_post_recv");
    p.post(IBV_WR_SEND, p.good(n));
    expect(p.far.status(), IBV_WC_LOC_PROT_ERR, "receive into it, " + of);
  }
}

class GoneMemory : public testing::TestWithParam<Loss> {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};
INSTANTIATE_TEST_SUITE_P(Losses, GoneMemory,
                         testing::Values(Loss::unmapped, Loss::no_access, Loss::read_only,
                                         Loss::truncated),
                         [](const auto& p) { return kNames[static_cast<size_t>(p.param)]; });

TEST_P(GoneMemory, ends_requests_of_rc) {
  everything_on_rc(GetParam(), {64, 20'000, 300'000}, true);
}
TEST_P(GoneMemory, ends_requests_of_uc) {
  everything_on_uc(GetParam(), {64, 300'000});
}
TEST_P(GoneMemory, ends_requests_of_ud) {
  everything_on_ud(GetParam());
}

void fail_on_failure() {
  if (testing::Test::HasFailure()) throw std::runtime_error("see above");
}

// Then it is mostly the kernel that reaches for the memory.
TEST_P(GoneMemory, ends_requests_of_rc_without_crc) {
  EXPECT_EXIT(with({{"WEFT_CRC", "off"}},
                   [&] {
                     everything_on_rc(GetParam(), {64, 300'000}, false);
                     fail_on_failure();
                   }),
              ::testing::ExitedWithCode(0), "");
}

// The order of many programs: free() gives a large buffer back to the kernel.
TEST(FreedMemory, is_deregistered_later_while_a_peer_writes) {
  Pair p(IBV_QPT_RC);
  Passing target(p.far.a);
  constexpr size_t kEach = 100'000;
  for (int i = 0; i < 20; ++i) {
    p.post(IBV_WR_RDMA_WRITE, p.good(kEach), target.begin, target.mr->rkey);
  }
  target.go(Loss::unmapped);
  size_t refused = 0;
  for (const ibv_wc& wc : collect(p.near.cq.get(), 20)) {
    refused += wc.status == IBV_WC_REM_ACCESS_ERR ? 1 : 0;
  }
  EXPECT_LE(refused, 1U);
}

}  // namespace
}  // namespace weft::test
