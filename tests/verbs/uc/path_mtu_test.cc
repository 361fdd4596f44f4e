// UC over a path that carries less than its ends send: spec/wdp 5.4, PROBE. All that the far side
// does is to lend memory and to post receives.

#include <gtest/gtest.h>

#include "tests/support/counted.h"
#include "tests/support/narrow_path.h"
#include "tests/verbs/endpoint.h"
#include "tests/verbs/peer_process.h"

namespace weft::test {
namespace {

constexpr size_t kLength = 200'000;
constexpr size_t kMessage = 8000;
constexpr size_t kMessages = 16;
constexpr size_t kLost = 15;          // rounds, at most
constexpr size_t kInbox = 512 << 10;  // in the peer's memory
constexpr QpOptions kUc{.type = IBV_QPT_UC};

uint8_t byte_at(size_t round, size_t i) {
  return static_cast<uint8_t>(round * 37 + i * 7 + (i >> 8) * 3 + 1);
}

class NearSide {
 public:
  explicit NearSide(PeerProcess& peer) { card_ = peer.connect_to(qp_.get(), own_gid(a_), kUc); }

  // What was written comes back.
  bool write_and_read(size_t round) {
    for (size_t i = 0; i < kLength; ++i) out_[i] = byte_at(round, i);
    std::fill(in_.begin(), in_.end(), uint8_t{0});
    post(IBV_WR_RDMA_WRITE, out_.data(), kLength, 0);
    post(IBV_WR_RDMA_READ, in_.data(), kLength, 0);
    const auto done = collect(cq_.get(), 2);
    check(done.size() == 2, "a Write and a Read complete");
    check(done[0].status == IBV_WC_SUCCESS, "a Write succeeds");
    return done[1].status == IBV_WC_SUCCESS && in_ == out_;
  }
  // So does what was sent.
  bool send_and_read() {
    for (size_t m = 0; m < kMessages; ++m) {
      for (size_t i = 0; i < kMessage; ++i) out_[m * kMessage + i] = byte_at(m + 100, i);
    }
    for (size_t m = 0; m < kMessages; ++m) {
      post(IBV_WR_SEND, out_.data() + m * kMessage, kMessage, 0);
    }
    post(IBV_WR_RDMA_READ, in_.data(), kMessages * kMessage, kInbox);
    const auto done = collect(cq_.get(), kMessages + 1);
    return done.size() == kMessages + 1 && done.back().status == IBV_WC_SUCCESS &&
           std::equal(in_.begin(), in_.begin() + kMessages * kMessage, out_.begin());
  }

 private:
  void post(ibv_wr_opcode opcode, const uint8_t* p, size_t n, size_t there) {
    ibv_send_wr wr{};
    wr.opcode = opcode;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.rdma = {card_.address + there, card_.rkey};
    const ibv_mr* mr =
        p >= in_.data() && p < in_.data() + in_.size() ? in_mr_.get() : out_mr_.get();
    check_errno(post_send(qp_.get(), wr, {sge(p, n, mr)}), "post");
  }

  const Adapter a_;
  std::vector<uint8_t> out_ = std::vector<uint8_t>(kLength);
  std::vector<uint8_t> in_ = std::vector<uint8_t>(kLength);
  const MrPtr out_mr_ = a_.reg(out_.data(), out_.size());
  const MrPtr in_mr_ = a_.reg(in_.data(), in_.size());
  const CqPtr cq_ = a_.cq(64);
  const QpPtr qp_ = make_qp(a_, cq_.get(), kUc);
  PeerCard card_{};
};

int talk(bool icmp) {
  const NarrowPath path(icmp);
  if (!path.made()) return kNotHere;
  check(path.enter_far(), "setns");
  PeerProcess peer(
      [](ibv_qp* qp, const ibv_mr* mr) {
        const auto* inbox = static_cast<const uint8_t*>(mr->addr) + kInbox;
        for (size_t m = 0; m < kMessages; ++m) {
          check_errno(post_recv(qp, m, {sge(inbox + m * kMessage, kMessage, mr)}), "receive");
        }
      },
      kUc);
  check(path.enter_near(), "setns");
  {
    const Adapter counting;  // from the first one on
    const Counted narrowed("uc_paths_narrowed");
    NearSide near(peer);
    // Writes are lost until both sides know what the path carries; nothing that comes later is.
    size_t round = 0;
    for (; round < kLost; ++round) {
      if (near.write_and_read(round)) break;
    }
    check(round < kLost, "a Write arrives");
    for (const size_t end = round + 20; ++round < end;) {
      check(near.write_and_read(round), "a later Write arrives, and the Read of it");
    }
    check(near.send_and_read(), "all Sends arrive");
    check(narrowed.grown().contains(""), "it is counted");
  }
  // It was too narrow indeed, and nothing went through it in pieces.
  const auto there = path.towards_far();
  const auto back = path.towards_near();
  check(there.fails > 0 && there.creates == 0, "the router drops what is too large");
  check(back.fails > 0 && back.creates == 0, "so does the other");
  return 0;
}

class PathMtu : public testing::TestWithParam<bool> {};

TEST_P(PathMtu, uc_finds_out_what_the_path_carries) {
  const int result = run_apart([] { return talk(GetParam()); });
  if (result == kNotHere) GTEST_SKIP() << "no namespaces and routers can be made here";
  EXPECT_EQ(result, 0);
}

INSTANTIATE_TEST_SUITE_P(Routers, PathMtu, testing::Values(false, true),
                         [](const auto& p) { return p.param ? "that_tell" : "that_are_silent"; });

}  // namespace
}  // namespace weft::test
