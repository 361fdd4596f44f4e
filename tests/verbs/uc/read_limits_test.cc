// What bounds a Read over UC: the room that its own socket has, and the tries that the program
// allows (spec/wdp-uc 5.4, spec/addressing 3).

#include <gtest/gtest.h>

#include <fstream>

#include "tests/abi/cm_datagram_fixture.h"
#include "tests/support/counted.h"
#include "tests/verbs/own_process.h"
#include "tests/verbs/raw_datagrams.h"
#include "tests/verbs/refusing_kernel.h"

namespace weft::test {
namespace {

constexpr size_t kMemory = 4 << 20;
constexpr QpOptions kUc{.type = IBV_QPT_UC};

struct Side {
  Side() : memory(kMemory), mr(a.reg(memory.data(), kMemory)), cq(a.cq(16)) {
    qp = make_qp(a, cq.get(), kUc);
  }
  Adapter a;
  std::vector<uint8_t> memory;
  MrPtr mr;
  CqPtr cq;
  QpPtr qp;
};

// Datagrams that the socket on this port had no room for (proc(5)).
uint64_t drops_of(uint16_t port) {
  for (const char* name : {"/proc/self/net/udp6", "/proc/self/net/udp"}) {
    std::ifstream file(name);
    std::string line;
    std::getline(file, line);
    while (std::getline(file, line)) {
      const size_t colon = line.find(':', line.find(':') + 1);
      if (std::stoul(line.substr(colon + 1, 4), nullptr, 16) != port) continue;
      return std::stoull(line.substr(line.find_last_of(' ', line.find_last_not_of(' '))));
    }
  }
  throw std::runtime_error("no such socket");
}

// On one engine, so that a whole answer is on its way before anybody looks at what came.
void reads_with_usual_buffers() {
  refusing_kernel.usual_buffers = true;
  Side a;
  Side b;
  for (size_t i = 0; i < kMemory; ++i) {
    b.memory[i] = static_cast<uint8_t>(i * 5 + (i >> 8) + (i >> 16));
  }
  connect(a.qp.get(), own_gid(a.a), b.qp.get(), own_gid(b.a), kUc);
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_RDMA_READ;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.wr.rdma = {reinterpret_cast<uintptr_t>(b.memory.data()), b.mr->rkey};
  check_errno(post_send(a.qp.get(), wr, {sge(a.memory.data(), kMemory, a.mr.get())}), "post_send");
  const auto done = collect(a.cq.get(), 1);
  check(done.size() == 1 && done[0].status == IBV_WC_SUCCESS, "a Read");
  check(a.memory == b.memory, "its bytes");
  check(drops_of(static_cast<uint16_t>(a.qp->qp_num >> 8)) == 0, "nothing finds the socket full");
}

TEST(UcReadLimits, no_more_is_asked_for_than_the_socket_takes) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(with({{"WEFT_ENGINES", "1"}}, reads_with_usual_buffers), ::testing::ExitedWithCode(0),
              "");
}

// A peer that answers what it likes.
class UcReadTries : public CmTest {
 protected:
  void SetUp() override {
    client = resolved(active.get(), peer.port());
    ASSERT_OK(create_qp(client.get(), IBV_QPT_UC));
    mr = rdma_reg_msgs(client.get(), memory.data(), memory.size());
    ASSERT_NE(mr, nullptr);
  }
  void TearDown() override { EXPECT_OK(rdma_dereg_mr(mr)); }
  void connect_with(uint8_t tries) {
    rdma_conn_param p = parameters();
    p.retry_count = tries;
    ASSERT_OK(rdma_connect(client.get(), &p));
    session.emplace(peer, peer.accept());
    expect_event(active.get(), RDMA_CM_EVENT_ESTABLISHED);
  }
  // All of the memory.
  void read() {
    ASSERT_OK(
        rdma_post_read(client.get(), nullptr, memory.data(), memory.size(), mr, 0, kThere, kKey));
  }
  ibv_wc_status done() const {
    ibv_wc wc{};
    EXPECT_EQ(rdma_get_send_comp(client.get(), &wc), 1);
    return wc.status;
  }
  // What asks for the Read, and what of it: those for earlier ones are passed over.
  wire::WdpData asked_after(std::optional<ReadId> earlier) {
    for (;;) {
      const auto h = peer.hear(wire::Opcode::read_request);
      const auto d = *h.data(wire::Opcode::read_request);
      if (d.read_id() != earlier) return d;
    }
  }

  static constexpr uint64_t kThere = 0x1000;
  static constexpr uint32_t kKey = 0x77;
  RawDatagrams peer{loopback_gid()};
  std::optional<RawUcSession> session;
  std::vector<uint8_t> memory = std::vector<uint8_t>(1000);
  ibv_mr* mr = nullptr;
};

// rdma_connect(3): "retry_count ... when timeouts occur".
class UcReadTriesAsTold : public UcReadTries, public testing::WithParamInterface<uint8_t> {};

TEST_P(UcReadTriesAsTold, are_as_many_as_the_program_says) {
  connect_with(GetParam());
  // Nobody answers.
  const Counted failed("uc_reads_failed");
  read();
  EXPECT_EQ(done(), IBV_WC_RETRY_EXC_ERR);
  unsigned asked = 0;
  while (const auto h = peer.hear(0)) asked += h->data(wire::Opcode::read_request) ? 1 : 0;
  EXPECT_EQ(asked, GetParam());
  failed.expect({{"", 1}});
}

INSTANTIATE_TEST_SUITE_P(Counts, UcReadTriesAsTold, testing::Values(1, 3));

// spec/wdp-uc 5.5: WC RETRY_EXC_ERR for that WR; QP stays RTS, later WRs continue.
TEST_F(UcReadTries, used_up_end_one_read_and_nothing_else) {
  connect_with(7);
  const Counted failed("uc_reads_failed");
  read();
  const ReadId lost = asked_after({}).read_id();
  EXPECT_EQ(done(), IBV_WC_RETRY_EXC_ERR);
  failed.expect({{"", 1}});
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  ASSERT_EQ(ibv_query_qp(client->qp, &attr, IBV_QP_STATE, &init), 0);
  EXPECT_EQ(attr.qp_state, IBV_QPS_RTS);

  // A Read that is answered, in two segments, the second one first.
  read();
  const wire::WdpData request = asked_after(lost);
  EXPECT_EQ(request.mlen, memory.size());
  EXPECT_EQ(request.to, TaggedOffset{kThere});
  EXPECT_EQ(request.stag, Stag{kKey});
  const Buffer answer = pattern(memory.size(), 9);
  constexpr uint32_t kStride = 512;
  for (const uint32_t at : {kStride, 0U}) {
    session->say({.msn = Msn{1},
                  .mo = MessageOffset{at},
                  .mlen = static_cast<uint32_t>(answer.size()),
                  .last = at != 0,
                  .opcode = wire::Opcode::read_response,
                  .stride = kStride,
                  .imm_or_read = request.imm_or_read,
                  .to = TaggedOffset{at}},
                 Bytes{answer}.subspan(at, std::min<size_t>(kStride, answer.size() - at)));
  }
  EXPECT_EQ(done(), IBV_WC_SUCCESS);
  EXPECT_EQ(std::memcmp(memory.data(), answer.data(), answer.size()), 0);

  // And a Write.
  ASSERT_OK(
      rdma_post_write(client.get(), nullptr, memory.data(), memory.size(), mr, 0, 0x2000, kKey));
  EXPECT_EQ(done(), IBV_WC_SUCCESS);
  const auto heard = peer.hear(wire::Opcode::write);
  const auto write = *heard.data(wire::Opcode::write);
  EXPECT_EQ(write.to, TaggedOffset{0x2000});
  EXPECT_EQ(write.stag, Stag{kKey});
  ASSERT_EQ(heard.bytes.size(), wire::WdpData::kSize + answer.size());
  EXPECT_EQ(std::memcmp(&heard.bytes[wire::WdpData::kSize], answer.data(), answer.size()), 0);
  failed.expect({{"", 1}});
}

}  // namespace
}  // namespace weft::test
