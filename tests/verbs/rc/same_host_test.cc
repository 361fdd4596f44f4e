// RC between two processes of one host: which way a connection goes, and what large payloads, which
// the peer pulls from where they lie, mean for those who change that memory, stop, or die
// (docs/spec/same-host.md).

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include <cstddef>
#include <deque>
#include <filesystem>
#include <thread>

#include "base/random.h"
#include "tests/support/as_user.h"
#include "tests/support/counted.h"
#include "tests/support/pattern.h"
#include "tests/support/rc_way.h"
#include "tests/verbs/own_process.h"
#include "tests/verbs/peer_process.h"
#include "tests/verbs/raw_target.h"

namespace weft::test {
namespace {

constexpr size_t kMemory = PeerProcess::kMemory;

// This side of a connection with a peer process.
struct Near {
  explicit Near(PeerProcess& peer) : card(peer.connect_to(qp.get(), own_gid(a))) {}
  void post(ibv_wr_opcode opcode, std::vector<uint8_t>& memory, const MrPtr& region, size_t offset,
            size_t n, uint64_t to) {
    ibv_send_wr wr{};
    wr.opcode = opcode;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.rdma.remote_addr = card.address + to;
    wr.wr.rdma.rkey = card.rkey;
    check_errno(post_send(qp.get(), wr, {sge(memory.data() + offset, n, region.get())}),
                "ibv_post_send");
  }
  // Of the next request, in the order of posting.
  ibv_wc_status status() {
    if (done.empty()) {
      for (const ibv_wc& wc : collect(cq.get(), 1)) done.push_back(wc.status);
    }
    check(!done.empty(), "a completion");
    const ibv_wc_status first = done.front();
    done.pop_front();
    return first;
  }
  // What is in the peer's memory.
  std::vector<uint8_t> look(size_t n) {
    std::vector<uint8_t> seen(n);
    const MrPtr region = a.reg(seen.data(), seen.size());
    post(IBV_WR_RDMA_READ, seen, region, 0, n, 0);
    EXPECT_EQ(status(), IBV_WC_SUCCESS);
    return seen;
  }
  const Adapter a;
  const CqPtr cq = a.cq(256);
  const QpPtr qp = make_qp(a, cq.get());
  const PeerCard card;
  std::deque<ibv_wc_status> done;
};

// All bytes there and back.
void expect_traffic(Near& near) {
  for (const size_t n :
       {size_t{1}, size_t{4096}, size_t{24'575}, size_t{24'576}, size_t{300'001}, kMemory}) {
    std::vector<uint8_t> memory = pattern_bytes<uint8_t>(n, n);
    const MrPtr region = near.a.reg(memory.data(), memory.size());
    near.post(IBV_WR_RDMA_WRITE, memory, region, 0, n, 0);
    ASSERT_EQ(near.status(), IBV_WC_SUCCESS);
    EXPECT_EQ(near.look(n), memory) << n;
  }
}

// What the peer's process counts; all that it ever did is with this test.
uint64_t counted_by(const PeerProcess& peer, const std::string& family) {
  const auto read = observe::read_process(peer.pid());
  EXPECT_TRUE(read.ok());
  uint64_t sum = 0;
  for (size_t i = 0; read.ok() && i < read->device.size(); ++i) {
    if (stats::table()[i].family == family) sum += read->device[i];
  }
  return sum;
}

struct SameHost : testing::Test {
  void SetUp() override {
    if (rc_by_udp()) GTEST_SKIP() << "RC goes by datagrams (WEFT_RC=udp)";
  }
};
using SameHostDeathTest = SameHost;

TEST_F(SameHost, bytes_pass_through_memory) {
  PeerProcess peer;
  const Adapter counting;
  const Counted here{"streams_same_host"};
  const Counted copying{"streams_same_host_copying"};
  Near near{peer};
  expect_traffic(near);
  here.expect({{"", 1}});
  copying.expect({});
}

TEST_F(SameHost, both_ends_may_be_of_one_process) {
  const Adapter a;
  const CqPtr cq = a.cq(16);
  const QpPtr x = make_qp(a, cq.get());
  const QpPtr y = make_qp(a, cq.get());
  const Counted here{"streams_same_host"};
  connect(x.get(), own_gid(a), y.get(), own_gid(a));
  here.expect({{"", 2}});
}

TEST_F(SameHost, a_peer_without_the_leave_to_pull_is_sent_copies) {
  PeerProcess peer{[](ibv_qp*, const ibv_mr*) {},
                   {},
                   [] {
                     // Reading the memory of others is what many containers forbid.
                     sock_filter code[] = {
                         BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                         BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
                         BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
                         BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
                     const sock_fprog program{std::size(code), code};
                     check(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "no_new_privs");
                     check(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0, "seccomp");
                   }};
  const Adapter counting;
  const Counted here{"streams_same_host"};
  Near near{peer};
  expect_traffic(near);
  here.expect({{"", 1}});
  EXPECT_EQ(counted_by(peer, "streams_same_host_copying"), 1U);
}

TEST_F(SameHost, another_user_is_reached_by_tcp) {
  if (!many_users()) GTEST_SKIP() << "only root can be several users";
  PeerProcess peer{[](ibv_qp*, const ibv_mr*) {},
                   {},
                   [] { check(setgid(kSomeUser) == 0 && setuid(kSomeUser) == 0, "setuid"); }};
  const Adapter counting;
  const Counted here{"streams_same_host"};
  const Counted refused{"same_host_refused"};
  Near near{peer};
  expect_traffic(near);
  here.expect({});
  // Whoever connects finds out; the other one is told.
  const auto why = refused.grown();
  ASSERT_EQ(why.size(), 1U);
  EXPECT_TRUE(why.contains("not_allowed") || why.contains("by_peer")) << why.begin()->first;
}

// The two sides stay with TCP for something in this process's environment, and each counts it.
void by_tcp(const char* counted) {
  PeerProcess peer;
  const Adapter counting;
  const Counted here{"streams_same_host"};
  const Counted refused{"same_host_refused"};
  Near near{peer};
  expect_traffic(near);
  check(here.grown().empty(), "by TCP");
  check(refused.grown() == Counted::Kinds{{counted, 1}}, counted);
  check(counted_by(peer, "same_host_refused") == 1, "counted by the peer");
  check(!testing::Test::HasFailure(), "traffic");
}

TEST_F(SameHostDeathTest, an_option_turns_it_off) {
  EXPECT_EXIT(with({{"WEFT_SAME_HOST", "off"}}, [] { by_tcp("off"); }), testing::ExitedWithCode(0),
              "");
}

TEST_F(SameHostDeathTest, an_option_leaves_the_ring_alone) {
  EXPECT_EXIT(with({{"WEFT_SAME_HOST", "ring"}},
                   [] {
                     PeerProcess peer;
                     const Adapter counting;
                     const Counted here{"streams_same_host"};
                     Near near{peer};
                     expect_traffic(near);
                     check(here.grown() == Counted::Kinds{{"", 1}}, "through memory");
                     check(!testing::Test::HasFailure(), "traffic");
                   }),
              testing::ExitedWithCode(0), "");
}

TEST_F(SameHostDeathTest, what_is_disturbed_on_purpose_goes_by_tcp) {
  EXPECT_EXIT(with({{"WEFT_FAULT", "split:0.3,seed:3"}}, [] { by_tcp("disturbed"); }),
              testing::ExitedWithCode(0), "");
}

TEST_F(SameHostDeathTest, what_is_recorded_goes_by_tcp) {
  std::string captures = testing::TempDir() + "same-host-XXXXXX";
  ASSERT_NE(mkdtemp(captures.data()), nullptr);
  EXPECT_EXIT(with({{"WEFT_TRACE", (captures + "/%p.pcapng").c_str()}}, [] { by_tcp("recorded"); }),
              testing::ExitedWithCode(0), "");
  std::filesystem::remove_all(captures);
}

// Without weft's extension nobody can ask.
TEST_F(SameHostDeathTest, without_the_extension_there_is_tcp) {
  EXPECT_EXIT(with({{"WEFT_EXT", "off"}}, [] { by_tcp("not_weft"); }), testing::ExitedWithCode(0),
              "");
}

TEST_F(SameHostDeathTest, a_peer_that_does_not_want_to_is_counted) {
  EXPECT_EXIT(with({},
                   [] {
                     PeerProcess peer{[](ibv_qp*, const ibv_mr*) {},
                                      {},
                                      [] { setenv("WEFT_SAME_HOST", "off", 1); }};
                     const Adapter counting;
                     const Counted here{"streams_same_host"};
                     const Counted refused{"same_host_refused"};
                     Near near{peer};
                     expect_traffic(near);
                     check(here.grown().empty(), "by TCP");
                     check(refused.grown() == Counted::Kinds{{"by_peer", 1}}, "counted");
                     check(!testing::Test::HasFailure(), "traffic");
                   }),
              testing::ExitedWithCode(0), "");
}

// Whoever of the two dials.
TEST_F(SameHost, a_peer_that_is_not_weft_is_counted) {
  Target t;
  const Counted refused{"same_host_refused"};
  const QpPtr waits = t.waiting_qp();
  RawPeer dials = t.dial(waits);
  dials.says(request_frame(t.gid, kPeerQpn, waits->qp_num, 1, false));
  refused.expect({{"not_weft", 1}});

  RawListener listener{t.gid};
  const uint32_t answers = static_cast<uint32_t>(listener.port()) << 8 | 1;
  const QpPtr asks = t.qp();
  to_rtr(asks.get(), answers, t.gid, {.reads = kSomeReads});
  to_rts(asks.get(), {.reads = kSomeReads});
  RawPeer answering = listener.accept();
  answering.says(reply_frame(t.gid, answers, asks->qp_num));
  refused.expect({{"not_weft", 2}});
}

// A peer that does not run has pulled nothing yet. The program has its memory back when
// ibv_dereg_mr() returns, and what the peer gets afterwards is what was there before.
TEST_F(SameHost, memory_that_is_taken_back_arrives_as_it_was) {
  PeerProcess peer;
  Near near{peer};
  near.look(1);
  kill(peer.pid(), SIGSTOP);
  std::vector<uint8_t> memory = pattern_bytes<uint8_t>(300'000, 1);
  const std::vector<uint8_t> before = memory;
  MrPtr region = near.a.reg(memory.data(), memory.size());
  near.post(IBV_WR_RDMA_WRITE, memory, region, 0, memory.size(), 0);
  region.reset();
  std::fill(memory.begin(), memory.end(), uint8_t{0});
  kill(peer.pid(), SIGCONT);
  ASSERT_EQ(near.status(), IBV_WC_SUCCESS);
  EXPECT_EQ(near.look(before.size()), before);
}

// Reads were answered, and their reader stands still before it has pulled all. The program closes
// the window, and what it writes then is not for the reader.
TEST_F(SameHost, a_window_that_is_closed_lends_its_memory_no_more) {
  constexpr int kReads = 3;  // more bytes at a time are not referred to
  struct Window {
    uint64_t address;
    uint32_t rkey;
  };
  int to_peer[2];
  int from_peer[2];
  ASSERT_EQ(pipe(to_peer), 0);
  ASSERT_EQ(pipe(from_peer), 0);
  PeerProcess peer{[&](ibv_qp* qp, const ibv_mr* mr) {
    std::thread{[&, qp, mr] {
      Window window{};
      check(read(to_peer[0], &window, sizeof window) == sizeof window, "read");
      ibv_sge sink = sge(mr->addr, kMemory, mr);
      ibv_send_wr reads[kReads]{};
      for (int i = 0; i < kReads; ++i) {
        reads[i].next = i + 1 < kReads ? &reads[i + 1] : nullptr;
        reads[i].sg_list = &sink;
        reads[i].num_sge = 1;
        reads[i].opcode = IBV_WR_RDMA_READ;
        reads[i].send_flags = IBV_SEND_SIGNALED;
        reads[i].wr.rdma.remote_addr = window.address;
        reads[i].wr.rdma.rkey = window.rkey;
      }
      ibv_send_wr* bad = nullptr;
      const Counted asked{"messages_sent"};
      check_errno(ibv_post_send(qp, reads, &bad), "ibv_post_send");
      // Another thread may have the engine, and post them later.
      while (asked.grown()["read"] < kReads) usleep(100);
      kill(getpid(), SIGSTOP);
      int good = 0;
      for (const ibv_wc& wc : collect(qp->send_cq, kReads)) good += wc.status == IBV_WC_SUCCESS;
      check(write(from_peer[1], &good, sizeof good) == sizeof good, "write");
    }}.detach();
  }};
  Near near{peer};
  std::vector<uint8_t> memory = pattern_bytes<uint8_t>(kMemory, 1);
  const std::vector<uint8_t> before = memory;
  const MrPtr region = near.a.reg(memory.data(), kMemory, kAllAccess | IBV_ACCESS_MW_BIND);
  const std::unique_ptr<ibv_mw, Freer<ibv_mw, ibv_dealloc_mw>> window{
      ibv_alloc_mw(near.a.pd.get(), IBV_MW_TYPE_2)};
  ASSERT_NE(window, nullptr);
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_BIND_MW;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.bind_mw = {
      window.get(),
      ibv_inc_rkey(window->rkey),
      {region.get(), reinterpret_cast<uintptr_t>(memory.data()), kMemory, IBV_ACCESS_REMOTE_READ}};
  check_errno(post_send(near.qp.get(), wr), "bind");
  ASSERT_EQ(near.status(), IBV_WC_SUCCESS);

  const Counted answered{"bytes_sent"};
  const Window lent{reinterpret_cast<uintptr_t>(memory.data()), wr.bind_mw.rkey};
  ASSERT_EQ(write(to_peer[1], &lent, sizeof lent), static_cast<ssize_t>(sizeof lent));
  int stopped = 0;
  ASSERT_EQ(waitpid(peer.pid(), &stopped, WUNTRACED), peer.pid());
  ASSERT_TRUE(WIFSTOPPED(stopped));
  answered.expect({{"read", kReads * kMemory}});
  ibv_send_wr close{};
  close.opcode = IBV_WR_LOCAL_INV;
  close.send_flags = IBV_SEND_SIGNALED;
  close.invalidate_rkey = lent.rkey;
  check_errno(post_send(near.qp.get(), close), "ibv_post_send");
  ASSERT_EQ(near.status(), IBV_WC_SUCCESS);
  std::fill(memory.begin(), memory.end(), uint8_t{0xdd});
  kill(peer.pid(), SIGCONT);
  int good = 0;
  ASSERT_EQ(read(from_peer[0], &good, sizeof good), static_cast<ssize_t>(sizeof good));
  EXPECT_EQ(good, kReads);
  EXPECT_EQ(near.look(kMemory), before);
  for (const int fd : {to_peer[0], to_peer[1], from_peer[0], from_peer[1]}) ::close(fd);
}

// A queue pair that goes takes its requests with it: they are flushed, and their memory is free. A
// peer that did not run meanwhile gets nothing of what comes into that memory afterwards.
TEST_F(SameHost, a_queue_pair_that_ends_gives_its_memory_back) {
  constexpr size_t kSize = 300'000;
  PeerProcess peer;
  Near near{peer};
  near.look(1);
  kill(peer.pid(), SIGSTOP);
  std::vector<uint8_t> memory = pattern_bytes<uint8_t>(kSize, 1);
  const std::vector<uint8_t> before = memory;
  MrPtr region = near.a.reg(memory.data(), memory.size());
  near.post(IBV_WR_RDMA_WRITE, memory, region, 0, kSize, 0);
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_ERR;
  check_errno(ibv_modify_qp(near.qp.get(), &attr, IBV_QP_STATE), "ERR");
  EXPECT_EQ(near.status(), IBV_WC_WR_FLUSH_ERR);
  std::fill(memory.begin(), memory.end(), uint8_t{0xdd});
  kill(peer.pid(), SIGCONT);
  while (counted_by(peer, "stream_end") == 0) std::this_thread::yield();
  std::vector<uint8_t> seen(kSize);
  const iovec to{seen.data(), kSize};
  const iovec from{reinterpret_cast<void*>(near.card.address), kSize};
  ASSERT_EQ(process_vm_readv(peer.pid(), &to, 1, &from, 1, 0), static_cast<ssize_t>(kSize));
  for (size_t i = 0; i < kSize; ++i) {
    ASSERT_TRUE(seen[i] == before[i] || seen[i] == PeerProcess::first_byte(i)) << i;
  }
}

TEST_F(SameHost, a_peer_that_is_stopped_holds_up_nothing_but_itself) {
  PeerProcess stopped;
  PeerProcess other;
  Near near{stopped};
  Near far{other};
  near.look(1);
  kill(stopped.pid(), SIGSTOP);
  std::vector<uint8_t> memory = pattern_bytes<uint8_t>(kMemory, 1);
  const MrPtr region = near.a.reg(memory.data(), memory.size());
  for (int i = 0; i < 16; ++i) near.post(IBV_WR_RDMA_WRITE, memory, region, 0, kMemory, 0);
  expect_traffic(far);
  kill(stopped.pid(), SIGCONT);
  for (int i = 0; i < 16; ++i) ASSERT_EQ(near.status(), IBV_WC_SUCCESS);
  EXPECT_EQ(near.look(kMemory), memory);
}

// Whatever was complete is right, whatever was not has failed, and nothing is left.
TEST_F(SameHost, a_peer_that_is_killed_in_the_middle_of_large_transfers) {
  const auto descriptors = [] {
    int n = 0;
    for (int fd = 0; fd < 4096; ++fd) n += fcntl(fd, F_GETFD) >= 0 ? 1 : 0;
    return n;
  };
  SeededRandom random{11};
  int before = 0;
  for (int round = 0; round < 20; ++round) {
    SCOPED_TRACE(round);
    if (round == 1) before = descriptors();
    PeerProcess peer;
    Near near{peer};
    // The peer's memory as PeerProcess has filled it.
    std::vector<uint8_t> theirs(kMemory);
    for (size_t i = 0; i < kMemory; ++i) theirs[i] = PeerProcess::first_byte(i);
    std::vector<uint8_t> memory(kMemory);
    const MrPtr region = near.a.reg(memory.data(), memory.size());
    const auto kill_at =
        std::chrono::steady_clock::now() + std::chrono::microseconds{random.next() % 5'000};
    bool killed = false;
    for (;;) {
      if (!killed && std::chrono::steady_clock::now() >= kill_at) {
        peer.kill_now();
        killed = true;
      }
      const size_t n = 1 + random.next() % kMemory;
      std::fill(memory.begin(), memory.end(), uint8_t{0xee});
      near.post(IBV_WR_RDMA_READ, memory, region, 0, n, 0);
      const ibv_wc_status status = near.status();
      if (status != IBV_WC_SUCCESS) {
        EXPECT_EQ(status, IBV_WC_RETRY_EXC_ERR);
        break;
      }
      ASSERT_TRUE(
          std::equal(theirs.begin(), theirs.begin() + static_cast<ptrdiff_t>(n), memory.begin()));
    }
    EXPECT_TRUE(killed);
  }
  EXPECT_LE(descriptors(), before + 8);
}

}  // namespace
}  // namespace weft::test
