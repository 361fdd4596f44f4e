// How two UC queue pairs that know each other's number find each other, and what becomes of it
// where they cannot (spec/addressing 6): one of them against a bare socket.

#include <gtest/gtest.h>

#include <optional>

#include "tests/support/counted.h"
#include "tests/verbs/endpoint.h"
#include "tests/verbs/raw_datagrams.h"

namespace weft::test {
namespace {

constexpr QpOptions kUc{.type = IBV_QPT_UC};

struct Side {
  Side() : mr(a.reg(memory.data(), memory.size())), cq(a.cq(128)), qp(make_qp(a, cq.get(), kUc)) {
    for (size_t i = 0; i < memory.size(); ++i) {
      memory[i] = static_cast<uint8_t>(i * 7 + (i >> 8) + (i >> 16) * 3 + 1);
    }
  }
  void bring_up(Qpn peer) {
    to_rtr(qp.get(), peer.value(), own_gid(a));
    to_rts(qp.get(), kUc);
  }
  int send(size_t n) {
    ibv_send_wr wr{};
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = IBV_SEND_SIGNALED;
    return post_send(qp.get(), wr, {sge(memory.data(), n, mr.get())});
  }
  Adapter a;
  std::vector<uint8_t> memory = std::vector<uint8_t>(8 << 20);
  MrPtr mr;
  CqPtr cq;
  QpPtr qp;
};

// The lower number calls; but what stands between the two may let only the other one begin.
TEST(UcBringUp, the_higher_number_calls_when_nobody_calls_it) {
  Side side;
  RawDatagrams peer(own_gid(side.a), RawDatagrams::kLow);
  ASSERT_GT(side.qp->qp_num, peer.qpn().value());
  side.bring_up(peer.qpn());
  ASSERT_EQ(side.send(300), 0);
  const auto req = *peer.accept().ctl(wire::CtlType::req);
  EXPECT_TRUE(req.ib_style);
  EXPECT_EQ(req.source.value(), side.qp->qp_num);
  EXPECT_EQ(req.destination, peer.qpn());
  const auto sent = peer.hear(wire::Opcode::send);
  EXPECT_EQ(std::memcmp(sent.bytes.data() + wire::WdpData::kSize, side.memory.data(), 300), 0);
  const auto done = collect(side.cq.get(), 1);
  ASSERT_EQ(done.size(), 1U);
  EXPECT_EQ(done[0].status, IBV_WC_SUCCESS);
}

// ... and whoever is called first does not call.
TEST(UcBringUp, the_higher_number_waits_as_long_as_it_is_called) {
  Side side;
  const ibv_gid gid = own_gid(side.a);
  RawDatagrams peer(gid, RawDatagrams::kLow);
  side.bring_up(peer.qpn());
  const Qpn number{side.qp->qp_num};
  peer.call(gid, port_of(number), number);
  (void)peer.answered();
  ASSERT_EQ(side.send(300), 0);
  (void)peer.hear(wire::Opcode::send);
  // Two seconds long: keepalives are further apart, the path is known to carry all on one host.
  for (int i = 0; i < 20; ++i) {
    const auto heard = peer.hear(100);
    EXPECT_FALSE(heard && heard->ctl(wire::CtlType::req)) << "it calls";
  }
}

// spec/rdmap 5.5: InfiniBand knows no end of a connection, and a queue pair whose peer is gone
// stays as it is. So a peer of the same address and number can call it anew.
TEST(UcBringUp, a_peer_that_left_calls_anew) {
  Side side;
  const ibv_gid gid = own_gid(side.a);
  std::optional<RawDatagrams> peer{std::in_place, gid, RawDatagrams::kLow};
  const uint16_t port = peer->port();
  side.bring_up(peer->qpn());
  const Qpn number{side.qp->qp_num};
  peer->call(gid, port_of(number), number);
  const auto rep = peer->answered();
  ASSERT_EQ(side.send(300), 0);
  (void)peer->hear(wire::Opcode::send);

  wire::WdpCtl goodbye = peer->message(wire::CtlType::dreq, number);
  goodbye.token = rep.ctl(wire::CtlType::rep)->source_token;
  peer->say(goodbye, rep.from);
  (void)peer->hear(wire::CtlType::drep);

  peer.emplace(gid, port);
  ASSERT_EQ(peer->port(), port);
  peer->call(gid, port_of(number), number);
  (void)peer->answered();
  ASSERT_EQ(side.send(200), 0);
  const auto sent = peer->hear(wire::Opcode::send);
  EXPECT_EQ(std::memcmp(sent.bytes.data() + wire::WdpData::kSize, side.memory.data(), 200), 0);
}

// spec/addressing 6.3: if bring-up fails, WRs complete RETRY_EXC_ERR and QP -> ERR (better than
// silent loss); it tries for 10 s from the first request on.
TEST(UcBringUp, a_peer_that_never_answers_is_given_up) {
  const Adapter counting;  // from the first one on
  const Counted silent("peer_silent");
  testing::internal::CaptureStderr();
  for (const uint16_t port : {RawDatagrams::kLow, RawDatagrams::kHigh}) {
    Side side;
    RawDatagrams peer(own_gid(side.a), port);
    side.bring_up(peer.qpn());
    ASSERT_EQ(side.send(10), 0);
    ASSERT_EQ(post_recv(side.qp.get(), 7, {sge(side.memory.data(), 10, side.mr.get())}), 0);
    (void)peer.hear(wire::CtlType::req);  // by either number
    std::vector<ibv_wc> done;
    for (int i = 0; i < 3 && done.size() < 2; ++i) {  // each of them waits for 10 s
      for (const ibv_wc& wc : collect(side.cq.get(), 2 - done.size())) done.push_back(wc);
    }
    ASSERT_EQ(done.size(), 2U);
    EXPECT_EQ(done[0].status, IBV_WC_RETRY_EXC_ERR);
    EXPECT_EQ(done[1].status, IBV_WC_WR_FLUSH_ERR);
    ibv_qp_attr attr{};
    ibv_qp_init_attr init{};
    ASSERT_EQ(ibv_query_qp(side.qp.get(), &attr, IBV_QP_STATE, &init), 0);
    EXPECT_EQ(attr.qp_state, IBV_QPS_ERR);
  }
  // The user has been told meanwhile; once, for it is one peer.
  const std::string words = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(silent.grown().contains("datagrams"));
  const size_t at = words.find("answers nothing over UDP");
  EXPECT_NE(at, std::string::npos) << words;
  EXPECT_EQ(words.find("answers nothing over UDP", at + 1), std::string::npos) << words;
}

// The kernel's buffer is not as large as what may be posted: its own answers hold it back as
// another one's would.
TEST(UcBringUp, to_itself_as_fast_as_it_goes) {
  constexpr uint64_t kMessages = 60;
  constexpr size_t kSize = 300'000;
  constexpr size_t kThere = 4 << 20;
  Side s;
  s.bring_up(Qpn{s.qp->qp_num});
  for (uint64_t i = 0; i < kMessages; ++i) ASSERT_EQ(post_recv(s.qp.get(), i, {}), 0);
  for (uint64_t i = 0; i < kMessages; ++i) {
    ibv_send_wr wr{};
    wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
    wr.imm_data = static_cast<uint32_t>(i);
    wr.wr.rdma.remote_addr = reinterpret_cast<uintptr_t>(&s.memory[kThere + i * 1000]);
    wr.wr.rdma.rkey = s.mr->rkey;
    ASSERT_EQ(post_send(s.qp.get(), wr, {sge(&s.memory[i * 2000], kSize, s.mr.get())}), 0);
  }
  EXPECT_EQ(collect(s.cq.get(), kMessages).size(), kMessages);
  // Of each the bytes that the next one has left.
  for (uint64_t i = 0; i < kMessages; ++i) {
    const size_t left = i + 1 < kMessages ? 1000 : kSize;
    EXPECT_EQ(std::memcmp(&s.memory[kThere + i * 1000], &s.memory[i * 2000], left), 0) << i;
  }
}

// spec/wdp-uc 3.9: an ERR is an event at the one whose Write it was. A peer may say ERR as often
// as it likes; what it makes the program keep is one event.
TEST(UcBringUp, a_peer_that_refuses_without_end_is_one_event) {
  Side side;
  const ibv_gid gid = own_gid(side.a);
  RawDatagrams peer(gid, RawDatagrams::kHigh);
  side.bring_up(peer.qpn());
  const auto heard = peer.accept();
  const auto req = *heard.ctl(wire::CtlType::req);
  (void)peer.hear(wire::CtlType::rtu);
  ASSERT_EQ(side.send(10), 0);
  const auto sent = peer.hear(wire::Opcode::send);
  wire::WdpCtl err = peer.message(wire::CtlType::err, req.source);
  err.token = req.source_token;
  err.reason = 0x01'01'00;
  err.offending = Bytes{sent.bytes}.first(wire::WdpData::kSize);
  const auto events = [&] {
    int n = 0;
    pollfd p{side.a.context->async_fd, POLLIN, 0};
    while (::poll(&p, 1, 0) == 1) {
      ibv_async_event event{};
      check_errno(ibv_get_async_event(side.a.context.get(), &event), "an event");
      EXPECT_EQ(event.event_type, IBV_EVENT_QP_ACCESS_ERR);
      ibv_ack_async_event(&event);
      ++n;
    }
    return n;
  };
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 100; ++i) peer.say(err, heard.from);
    // Behind them a question: all of them have come when it is answered.
    wire::WdpCtl ka = peer.message(wire::CtlType::ka, req.source);
    ka.token = req.source_token;
    peer.say(ka, heard.from);
    (void)peer.hear(wire::CtlType::kaa);
    EXPECT_EQ(events(), 1);
  }
}

}  // namespace
}  // namespace weft::test
