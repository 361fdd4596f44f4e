// What a channel (spec/wdp-rd) takes of its process's memory while nothing passes: docs/design/26.

#include <gtest/gtest.h>
#include <malloc.h>

#include <chrono>
#include <iostream>

#include "base/gid.h"
#include "tests/verbs/endpoint.h"
#include "tests/verbs/own_process.h"

namespace weft::test {
namespace {

constexpr size_t kGrh = 40;
constexpr size_t kEach = 24;

size_t heap() {
  const struct mallinfo2 m = mallinfo2();
  return m.uordblks + m.hblkhd;
}

std::array<uint8_t, kEach> message(size_t peer) {
  std::array<uint8_t, kEach> bytes;
  for (size_t i = 0; i < kEach; ++i) bytes[i] = static_cast<uint8_t>(peer * 7 + i * 13 + 1);
  return bytes;
}

// One queue pair sends to another one, which its process finds at many addresses of the loopback:
// for each there are both ends of a channel.
class ManyChannels {
 public:
  explicit ManyChannels(size_t peers)
      : peers_(peers),
        cq_(adapter_.cq(static_cast<int>(2 * peers))),
        in_(peers * (kGrh + kEach)),
        out_(peers * kEach),
        in_mr_(adapter_.reg(in_.data(), in_.size())),
        out_mr_(adapter_.reg(out_.data(), out_.size())),
        from_(make_ud()),
        to_(make_ud()) {
    for (size_t i = 0; i < peers; ++i) {
      ibv_ah_attr at{};
      at.is_global = 1;
      at.port_num = 1;
      const Gid gid = Gid::from_ipv4(0x7f000100U + static_cast<uint32_t>(i));
      std::memcpy(at.grh.dgid.raw, gid.raw.data(), gid.raw.size());
      ah_.push_back(ibv_create_ah(adapter_.pd.get(), &at));
      check(ah_.back() != nullptr, "ibv_create_ah");
    }
  }
  ManyChannels(const ManyChannels&) = delete;
  ManyChannels& operator=(const ManyChannels&) = delete;
  ~ManyChannels() {
    for (ibv_ah* ah : ah_) ibv_destroy_ah(ah);
  }

  void send(size_t peer) {
    const auto bytes = message(peer);
    uint8_t* const room = &in_[peer * (kGrh + kEach)];
    check_errno(post_recv(to_.get(), peer, {sge(room, kGrh + kEach, in_mr_.get())}), "post_recv");
    uint8_t* const place = &out_[peer * kEach];
    std::copy(bytes.begin(), bytes.end(), place);
    ibv_send_wr wr{};
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.ud = {.ah = ah_[peer], .remote_qpn = to_->qp_num, .remote_qkey = kQKey};
    check_errno(post_send(from_.get(), wr, {sge(place, kEach, out_mr_.get())}), "post_send");
    // Of the sender, and of the receiver.
    for (const ibv_wc& wc : collect(cq_.get(), 2)) {
      check(wc.status == IBV_WC_SUCCESS, ibv_wc_status_str(wc.status));
      if (wc.opcode != IBV_WC_RECV) continue;
      const uint8_t* const came = &in_[wc.wr_id * (kGrh + kEach) + kGrh];
      check(std::equal(bytes.begin(), bytes.end(), came), "every byte");
    }
  }
  // For what is due.
  void turn() {
    ibv_wc wc;
    check(ibv_poll_cq(cq_.get(), 1, &wc) == 0, "nothing more");
  }

 private:
  QpPtr make_ud() {
    QpPtr qp =
        make_qp(adapter_, cq_.get(), {.depth = static_cast<uint32_t>(peers_), .type = IBV_QPT_UD});
    to_rtr(qp.get(), 0, {}, {.type = IBV_QPT_UD});
    to_rts(qp.get(), {.type = IBV_QPT_UD});
    return qp;
  }

  const size_t peers_;
  Adapter adapter_;
  CqPtr cq_;
  std::vector<uint8_t> in_;
  std::vector<uint8_t> out_;
  MrPtr in_mr_;
  MrPtr out_mr_;
  QpPtr from_;
  QpPtr to_;
  std::vector<ibv_ah*> ah_;
};

// A second after its last message a channel has given back what is of use while something passes,
// and goes on with the next one.
void idle_channels(size_t peers, size_t most) {
  ManyChannels many(peers + 1);
  many.send(peers);
  const size_t before = heap();
  for (size_t i = 0; i < peers; ++i) many.send(i);
  const size_t busy = (heap() - before) / (2 * peers);
  size_t each = busy;
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds{30};
  while (each > most && std::chrono::steady_clock::now() < until) {
    many.turn();
    each = heap() > before ? (heap() - before) / (2 * peers) : 0;
  }
  std::cerr << 2 * peers << " ends of channels: " << busy
            << " bytes of heap for each behind its message, " << each << " at rest\n";
  check(each <= most, "memory of an idle channel");
  for (size_t i = 0; i < peers; ++i) many.send(i);
}

class IdleChannels : public testing::Test {
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(IdleChannels, give_back_what_is_of_use_while_something_passes) {
  EXPECT_EXIT(with({{"WEFT_UD", "reliable"}}, [] { idle_channels(200, 512); }),
              ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace weft::test
