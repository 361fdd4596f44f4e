// InfiniBand's initiator depth, max_rd_atomic, of a queue pair that is connected by number: how
// many Reads its peer sees at once.

#include "tests/verbs/raw_target.h"

namespace weft::test {
namespace {

class ReadsLimit : public testing::Test {
 protected:
  // The peer allows four Reads.
  void open(uint8_t max_rd_atomic) {
    qp = t.qp();
    check_errno(post_recv(qp.get(), kReceive, {sge(t.inbox.data() + 1024, 1024, t.inbox_mr.get())}),
                "receive");
    to_rtr(qp.get(), kPeerQpn, t.gid, {.reads = kSomeReads});
    to_rts(qp.get(), {.reads = max_rd_atomic});
    peer.emplace(t.open(qp));
  }
  int post_read(uint64_t wr_id) {
    ibv_send_wr wr{};
    wr.wr_id = wr_id;
    wr.opcode = IBV_WR_RDMA_READ;
    wr.send_flags = IBV_SEND_SIGNALED;
    return post_send(qp.get(), wr, {sge(t.memory.data() + Target::kAround, 100, t.mr.get())});
  }
  // Empty when none comes.
  Buffer next_fpdu() {
    const Buffer fpdu = peer->hears_fpdu();
    if (fpdu.empty()) return {};
    const Bytes ulpdu = split_fpdu(fpdu).ulpdu;
    return {ulpdu.begin(), ulpdu.end()};
  }
  // The next Read Request, whatever else is said before it.
  std::optional<wire::ReadRequest> next_request() {
    for (Buffer u = next_fpdu(); !u.empty(); u = next_fpdu()) {
      const Frame f = parse_ulpdu(u);
      if (f.op() == wire::Opcode::read_request) return wire::ReadRequest::parse(f.payload.data());
    }
    ADD_FAILURE() << "no Read Request comes";
    return {};
  }
  // The queue pair has received a message since, and so has said all that it had to say.
  size_t requests_so_far() {
    peer->says_ulpdu(untagged({.msn = ++sent}, pattern(50, 1)));
    const auto received = collect(t.cq.get(), 1);
    EXPECT_EQ(received.size(), 1U);
    if (!received.empty()) {
      EXPECT_EQ(received[0].wr_id, kReceive);
    }
    size_t n = 0;
    while (peer->has_news()) n += parse_ulpdu(next_fpdu()).op() == wire::Opcode::read_request;
    return n;
  }
  void answer(const wire::ReadRequest& r) {
    peer->says_ulpdu(
        tagged({.op = wire::Opcode::read_response, .stag = r.sink_stag, .to = r.sink_to.value()},
               pattern(r.size, 5)));
  }
  int modify(ibv_qp_state to, uint8_t reads, int mask) {
    ibv_qp_attr attr{};
    attr.qp_state = to;
    attr.max_rd_atomic = reads;
    return ibv_modify_qp(qp.get(), &attr, IBV_QP_STATE | mask);
  }

  static constexpr uint64_t kReceive = 99;
  Target t;
  QpPtr qp;
  std::optional<RawPeer> peer;
  uint32_t sent = 0;
};

class ReadsLimitOfOne : public ReadsLimit, public testing::WithParamInterface<int> {};

// 0 counts as 1, as with ConnectX.
INSTANTIATE_TEST_SUITE_P(Told, ReadsLimitOfOne, testing::Values(0, 1),
                         testing::PrintToStringParamName());

TEST_P(ReadsLimitOfOne, one_at_a_time) {
  open(static_cast<uint8_t>(GetParam()));
  for (uint64_t id = 1; id <= 3; ++id) ASSERT_EQ(post_read(id), 0);
  auto request = next_request();
  ASSERT_TRUE(request);
  EXPECT_EQ(requests_so_far(), 0U) << "the others wait";
  for (uint64_t id = 1; id <= 3; ++id) {
    answer(*request);
    const auto done = collect(t.cq.get(), 1);
    ASSERT_EQ(done.size(), 1U);
    EXPECT_EQ(done[0].wr_id, id);
    EXPECT_EQ(done[0].status, IBV_WC_SUCCESS);
    const Buffer read = pattern(100, 5);
    EXPECT_TRUE(std::equal(read.begin(), read.end(), t.memory.begin() + Target::kAround));
    if (id < 3) request = next_request();
    ASSERT_TRUE(request);
  }
}

// In SQD the program may change it.
TEST_F(ReadsLimit, another_number_in_sqd) {
  open(1);
  for (uint64_t id = 1; id <= 3; ++id) ASSERT_EQ(post_read(id), 0);
  const auto first = next_request();
  ASSERT_TRUE(first);
  ASSERT_EQ(modify(IBV_QPS_SQD, 0, 0), 0);
  ASSERT_EQ(modify(IBV_QPS_SQD, 2, IBV_QP_MAX_QP_RD_ATOMIC), 0);
  ASSERT_EQ(modify(IBV_QPS_RTS, 0, 0), 0);
  EXPECT_TRUE(next_request()) << "while the first has no answer";
  EXPECT_EQ(requests_so_far(), 0U) << "the third waits";
}

}  // namespace
}  // namespace weft::test
