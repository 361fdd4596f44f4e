// A queue pair for a raw peer to talk to, with memory of which it may touch a part; and what must
// be as before when the peer is gone.
#pragma once

#include <dirent.h>

#include <set>

#include "base/random.h"
#include "tests/verbs/raw_peer.h"

namespace weft::test {

inline constexpr uint32_t kPeerQpn = 0x000101;  // lower than any of ours: the peer is to dial
inline constexpr uint16_t kSomeReads = 4;

inline size_t entries(const char* directory) {
  size_t n = 0;
  DIR* d = opendir(directory);
  while (readdir(d) != nullptr) ++n;
  closedir(d);
  return n;
}

inline Buffer random_bytes(SeededRandom& random, size_t n) {
  Buffer b(n);
  for (auto& x : b) x = static_cast<std::byte>(random.next() >> 11);
  return b;
}

// An adapter with memory of which the peer may touch a part, in the middle.
struct Target {
  static constexpr size_t kRegion = 64 * 1024;
  static constexpr size_t kAround = 8192;

  Target()
      : memory(pattern(kRegion + 2 * kAround, 3)),
        before(memory),
        mr(adapter.reg(memory.data() + kAround, kRegion)),
        inbox(pattern(4096, 4)),
        inbox_mr(adapter.reg(inbox.data() + 1024, 1024, IBV_ACCESS_LOCAL_WRITE)),
        cq(adapter.cq(256)) {}

  QpPtr qp() {
    QpPtr q = make_qp(adapter, cq.get(), {.reads = kSomeReads});
    ports.insert(q->qp_num >> 8);
    return q;
  }
  // Waits for a Request of `kPeerQpn`.
  QpPtr waiting_qp() {
    QpPtr q = qp();
    check_errno(post_recv(q.get(), 7, {sge(inbox.data() + 1024, 1024, inbox_mr.get())}), "receive");
    to_rtr(q.get(), kPeerQpn, gid, {.reads = kSomeReads});
    to_rts(q.get(), {.reads = kSomeReads});
    return q;
  }
  RawPeer dial(const QpPtr& q) {
    return RawPeer::connect(gid, static_cast<uint16_t>(q->qp_num >> 8));
  }
  Buffer request(const QpPtr& q) { return request_frame(gid, kPeerQpn, q->qp_num, ++nonce); }
  uint64_t to() const { return reinterpret_cast<uintptr_t>(memory.data()) + kAround; }
  Stag stag() const { return Stag{mr->rkey}; }

  // Request, Reply, RTR.
  RawPeer open(const QpPtr& q) {
    RawPeer peer = dial(q);
    peer.says(request(q));
    const Buffer reply = peer.hears(wire::MpaStart::kSize);
    EXPECT_EQ(reply.size(), wire::MpaStart::kSize);
    const auto start = wire::MpaStart::parse(wire::MpaStart::Kind::reply, reply.data());
    EXPECT_TRUE(start.ok() && !start->rejected && start->extension_accepted);
    peer.hears(start->private_data_length);
    peer.says_ulpdu(tagged({.stag = Stag{1}}));
    return peer;
  }

  // Nothing outside the region, and nothing of the memory for receives but the receive.
  void expect_guards() const {
    EXPECT_TRUE(std::equal(before.begin(), before.begin() + kAround, memory.begin()));
    EXPECT_TRUE(std::equal(before.end() - kAround, before.end(), memory.end() - kAround));
    const Buffer made = pattern(4096, 4);
    EXPECT_TRUE(std::equal(made.begin(), made.begin() + 1024, inbox.begin()));
    EXPECT_TRUE(std::equal(made.begin() + 2048, made.end(), inbox.begin() + 2048));
  }
  void expect_untouched() const { EXPECT_TRUE(memory == before) << "a byte of memory changed"; }

  // Two queue pairs of the adapter, and a Write between them.
  void expect_good_connection() {
    const QpPtr a = qp();
    const QpPtr b = qp();
    connect(a.get(), gid, b.get(), gid);
    Buffer source = pattern(3000, 9);
    Buffer sink(3000);
    const MrPtr from = adapter.reg(source.data(), source.size());
    const MrPtr into = adapter.reg(sink.data(), sink.size());
    ibv_send_wr wr{};
    wr.opcode = IBV_WR_RDMA_WRITE;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.rdma.remote_addr = reinterpret_cast<uintptr_t>(sink.data());
    wr.wr.rdma.rkey = into->rkey;
    ASSERT_EQ(post_send(a.get(), wr, {sge(source.data(), source.size(), from.get())}), 0);
    const auto done = collect(cq.get(), 1);
    ASSERT_EQ(done.size(), 1U);
    EXPECT_EQ(done[0].status, IBV_WC_SUCCESS);
    EXPECT_TRUE(sink == source);
  }

  // A port stays with the process, with a socket for TCP and one for UDP (spec/addressing 2.2).
  size_t descriptors() const { return entries("/proc/self/fd") - 2 * ports.size(); }
  static size_t threads() { return entries("/proc/self/task"); }

  Adapter adapter;
  ibv_gid gid = own_gid(adapter);
  Buffer memory, before;
  MrPtr mr;
  Buffer inbox;
  MrPtr inbox_mr;
  CqPtr cq;
  std::set<uint32_t> ports;
  uint64_t nonce = 0x1000;
};

// Before and after each test the adapter is held against itself.
class HostilePeer : public testing::Test {
 protected:
  void SetUp() override {
    t.expect_good_connection();  // what stays open is open from here on
    descriptors = t.descriptors();
    threads = t.threads();
  }
  void TearDown() override {
    t.expect_guards();
    t.expect_good_connection();
    // Sockets that still say goodbye do so for two seconds at most.
    for (int i = 0; i < 400 && t.descriptors() > descriptors; ++i) usleep(10'000);
    EXPECT_LE(t.descriptors(), descriptors);
    EXPECT_EQ(t.threads(), threads);
  }
  Target t;
  size_t descriptors = 0;
  size_t threads = 0;
};

}  // namespace weft::test
