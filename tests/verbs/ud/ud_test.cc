// UD: who gets a datagram, what of it, and what becomes of those that nobody gets (spec/wdp-ud 3).

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/support/counted.h"
#include "tests/support/rc_way.h"
#include "tests/verbs/raw_peer.h"
#include "wire/wdp_ud.h"

namespace weft::test {
namespace {

constexpr size_t kGrh = 40;
constexpr QpOptions kUd{.depth = 256, .type = IBV_QPT_UD};
using AhPtr = std::unique_ptr<ibv_ah, Freer<ibv_ah, ibv_destroy_ah>>;

AhPtr handle_to(const Adapter& a, const ibv_gid& gid) {
  ibv_ah_attr attr{.grh = {.dgid = gid, .hop_limit = 1}, .is_global = 1, .port_num = 1};
  AhPtr ah{ibv_create_ah(a.pd.get(), &attr)};
  check(ah != nullptr, "ibv_create_ah");
  return ah;
}

// A UD queue pair with memory: the lower half is sent from, the upper half received into.
struct Ud {
  static constexpr size_t kHalf = 64 << 10;
  explicit Ud(const QpOptions& o = kUd, int entries = 512)
      : memory(2 * kHalf), mr(a.reg(memory.data(), memory.size())), cq(a.cq(entries)) {
    for (size_t i = 0; i < kHalf; ++i) memory[i] = static_cast<uint8_t>(i * 3 + (i >> 8) + 1);
    qp = make_qp(a, cq.get(), o);
    to_rtr(qp.get(), 0, {});
    to_rts(qp.get());
  }
  int receive(size_t offset, size_t n, uint64_t wr_id = 0) {
    return post_recv(qp.get(), wr_id, {sge(&memory[kHalf + offset], n, mr.get())});
  }
  int send(ibv_ah* ah, uint32_t qpn, size_t offset, size_t n, uint32_t q_key = kQKey) {
    ibv_send_wr wr{};
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.ud.ah = ah;
    wr.wr.ud.remote_qpn = qpn;
    wr.wr.ud.remote_qkey = q_key;
    return post_send(qp.get(), wr, {sge(&memory[offset], n, mr.get())});
  }
  const uint8_t* received(size_t offset) const { return &memory[kHalf + offset]; }
  bool same(size_t offset, const Ud& from, size_t at, size_t n) const {
    return std::memcmp(received(offset) + kGrh, &from.memory[at], n) == 0;
  }
  uint32_t number() const { return qp->qp_num; }

  Adapter a;
  std::vector<uint8_t> memory;
  MrPtr mr;
  CqPtr cq;
  QpPtr qp;
};

TEST(UnreliableDatagram, a_message_comes_behind_its_grh_and_shows_the_way_back) {
  Ud a;
  Ud b;
  const auto to_b = handle_to(a.a, own_gid(b.a));
  ASSERT_EQ(b.receive(0, kGrh + 1000, 7), 0);
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_SEND_WITH_IMM;
  wr.imm_data = htonl(0x01020304);
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.wr.ud = {.ah = to_b.get(), .remote_qpn = b.number(), .remote_qkey = kQKey};
  ASSERT_EQ(post_send(a.qp.get(), wr, {sge(a.memory.data(), 900, a.mr.get())}), 0);
  const auto sent = collect(a.cq.get(), 1);
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].status, IBV_WC_SUCCESS);
  auto came = collect(b.cq.get(), 1);
  ASSERT_EQ(came.size(), 1U);
  EXPECT_EQ(came[0].status, IBV_WC_SUCCESS);
  EXPECT_EQ(came[0].wr_id, 7U);
  EXPECT_EQ(came[0].byte_len, kGrh + 900);
  EXPECT_EQ(came[0].src_qp, a.number());
  EXPECT_EQ(came[0].wc_flags, static_cast<unsigned>(IBV_WC_GRH | IBV_WC_WITH_IMM));
  EXPECT_EQ(came[0].imm_data, htonl(0x01020304));
  EXPECT_TRUE(b.same(0, a, 0, 900));
  ibv_grh grh;
  std::memcpy(&grh, b.received(0), sizeof grh);
  const ibv_gid gid = own_gid(a.a);
  EXPECT_EQ(std::memcmp(&grh.sgid, &gid, sizeof gid), 0);
  EXPECT_EQ(ntohs(grh.paylen), 900);
  EXPECT_GT(grh.hop_limit, 0);

  const AhPtr back{ibv_create_ah_from_wc(b.a.pd.get(), &came[0], &grh, 1)};
  ASSERT_NE(back, nullptr);
  ASSERT_EQ(a.receive(0, kGrh + 100), 0);
  ASSERT_EQ(b.send(back.get(), came[0].src_qp, 500, 100), 0);
  ASSERT_EQ(collect(b.cq.get(), 1).size(), 1U);
  ASSERT_EQ(collect(a.cq.get(), 1).size(), 1U);
  EXPECT_TRUE(a.same(0, b, 500, 100));
}

// A bare UDP socket on this host.
class RawUdp {
 public:
  explicit RawUdp(const ibv_gid& gid) : gid_(gid) {
    SocketAddress at(gid, 0);
    fd_ = socket(at.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0);
    check(bind(fd_, at.get(), at.length) == 0, "bind");
    check(getsockname(fd_, at.get(), &at.length) == 0, "getsockname");
    // Of both families at the same place.
    port_ = ntohs(reinterpret_cast<sockaddr_in*>(at.get())->sin_port);
  }
  ~RawUdp() { close(fd_); }
  RawUdp(const RawUdp&) = delete;
  RawUdp& operator=(const RawUdp&) = delete;

  uint16_t port() const { return port_; }
  void send(uint16_t port, const std::vector<std::byte>& bytes) {
    SocketAddress to(gid_, port);
    check(sendto(fd_, bytes.data(), bytes.size(), 0, to.get(), to.length) ==
              static_cast<ssize_t>(bytes.size()),
          "sendto");
  }
  // Nothing: it did not come within 10 s.
  std::vector<std::byte> hear() {
    pollfd p{fd_, POLLIN, 0};
    std::vector<std::byte> bytes(2000);
    if (poll(&p, 1, 10'000) != 1) return {};
    bytes.resize(static_cast<size_t>(std::max<ssize_t>(recv(fd_, bytes.data(), 2000, 0), 0)));
    return bytes;
  }
  bool silent() {
    pollfd p{fd_, POLLIN, 0};
    return poll(&p, 1, 0) == 0;
  }

 private:
  const ibv_gid gid_;
  int fd_ = -1;
  uint16_t port_ = 0;
};

// spec/wdp-ud 3.3: the sender's number says on which port it is, and behind a NAT it comes from
// another one. Only who answers what came knows that.
TEST(UnreliableDatagram, an_answer_goes_to_the_port_that_the_datagram_came_from) {
  if (ud_by_channels()) GTEST_SKIP() << "UD goes by channels (WEFT_UD=reliable)";
  Ud b;
  const ibv_gid gid = own_gid(b.a);
  RawUdp home(gid);
  RawUdp nat(gid);
  ASSERT_NE(home.port(), nat.port());
  const Qpn sender = make_qpn(home.port(), 9);
  const wire::WdpUd header{.q_key = QKey{kQKey}, .source = sender, .destination = Qpn{b.number()}};
  std::vector<std::byte> datagram(wire::WdpUd::kSize);
  header.encode(datagram.data());
  ASSERT_EQ(b.receive(0, kGrh + 100), 0);
  nat.send(static_cast<uint16_t>(b.number() >> 8), datagram);
  auto came = collect(b.cq.get(), 1);
  ASSERT_EQ(came.size(), 1U);
  EXPECT_EQ(came[0].src_qp, sender.value());
  ibv_grh grh;
  std::memcpy(&grh, b.received(0), sizeof grh);

  const AhPtr back{ibv_create_ah_from_wc(b.a.pd.get(), &came[0], &grh, 1)};
  ASSERT_NE(back, nullptr);
  ASSERT_EQ(b.send(back.get(), came[0].src_qp, 500, 100), 0);
  ASSERT_EQ(collect(b.cq.get(), 1).size(), 1U);
  const auto heard = nat.hear();
  const auto answer = wire::WdpUd::parse(heard);
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->destination, sender);
  EXPECT_EQ(answer->source, Qpn{b.number()});
  ASSERT_EQ(heard.size(), wire::WdpUd::kSize + 100);
  EXPECT_EQ(std::memcmp(&heard[wire::WdpUd::kSize], &b.memory[500], 100), 0);
  EXPECT_TRUE(home.silent());

  // An address handle of the same address that was not made from it.
  const auto plain = handle_to(b.a, gid);
  ASSERT_EQ(b.send(plain.get(), came[0].src_qp, 500, 100), 0);
  ASSERT_EQ(collect(b.cq.get(), 1).size(), 1U);
  EXPECT_EQ(home.hear().size(), wire::WdpUd::kSize + 100);
  EXPECT_TRUE(nat.silent());
}

TEST(UnreliableDatagram, a_lid_leads_there_as_well) {
  Ud a;
  Ud b;
  ibv_port_attr port{};
  ASSERT_EQ(ibv_query_port(b.a.context.get(), 1, &port), 0);
  if (port.lid == 0) GTEST_SKIP() << "this host has no IPv4 address";
  ibv_ah_attr attr{};
  attr.dlid = port.lid;
  attr.port_num = 1;
  const AhPtr ah{ibv_create_ah(a.a.pd.get(), &attr)};
  ASSERT_NE(ah, nullptr);
  ASSERT_EQ(b.receive(0, kGrh + 64), 0);
  ASSERT_EQ(a.send(ah.get(), b.number(), 0, 64), 0);
  ASSERT_EQ(collect(b.cq.get(), 1).size(), 1U);
  EXPECT_TRUE(b.same(0, a, 0, 64));
}

// spec/wdp-ud 3.1: a wrong Q_Key, no receive, too long for it: dropped, and nobody is told. What
// the next good message brings shows that the others are gone.
TEST(UnreliableDatagram, what_does_not_fit_is_dropped_and_the_receive_stays) {
  if (ud_by_channels()) GTEST_SKIP() << "UD goes by channels (WEFT_UD=reliable)";
  Ud a;
  Ud b;
  const auto to_b = handle_to(a.a, own_gid(b.a));
  ASSERT_EQ(a.send(to_b.get(), b.number(), 0, 100), 0);  // no receive
  ASSERT_EQ(collect(a.cq.get(), 1).size(), 1U);
  ibv_wc none;
  for (int i = 0; i < 20'000; ++i) ASSERT_EQ(ibv_poll_cq(b.cq.get(), 1, &none), 0);
  ASSERT_EQ(b.receive(0, kGrh + 100, 1), 0);
  ASSERT_EQ(a.send(to_b.get(), b.number(), 100, 100, kQKey + 1), 0);
  ASSERT_EQ(a.send(to_b.get(), b.number(), 200, 101), 0);
  // InfiniBand 10.2.5: with the high bit it is the sender's own key, the right one here.
  ASSERT_EQ(a.send(to_b.get(), b.number(), 300, 100, 0x80000000), 0);
  for (const ibv_wc& wc : collect(a.cq.get(), 3)) EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  const auto came = collect(b.cq.get(), 1);
  ASSERT_EQ(came.size(), 1U);
  EXPECT_EQ(came[0].wr_id, 1U);
  EXPECT_TRUE(b.same(0, a, 300, 100));
}

// The receive that stays was taken out of its queue in another visit of the engine's.
TEST(UnreliableDatagram, a_receive_that_stays_completes_at_once) {
  Ud a;
  Ud b;
  const auto to_b = handle_to(a.a, own_gid(b.a));
  for (uint64_t round = 1; round <= 2; ++round) {
    ASSERT_EQ(b.receive(0, kGrh + 100, round), 0);
    const Counted dropped{"datagram_dropped"};
    ASSERT_EQ(a.send(to_b.get(), b.number(), 200, 101), 0);
    ibv_wc none;
    while (dropped.grown().empty()) ASSERT_EQ(ibv_poll_cq(b.cq.get(), 1, &none), 0);
    ASSERT_EQ(a.send(to_b.get(), b.number(), 300, 100), 0);
    ASSERT_EQ(collect(a.cq.get(), 2).size(), 2U);
    EXPECT_EQ(collect(b.cq.get(), 1).at(0).wr_id, round);
  }
}

// The kernel does not let such a socket send to all: lost on its way, as anywhere further on.
TEST(UnreliableDatagram, what_the_kernel_refuses_to_send_is_lost_and_counted) {
  if (ud_by_channels()) GTEST_SKIP() << "UD goes by channels (WEFT_UD=reliable)";
  Ud a;
  ibv_gid all{};
  all.raw[10] = all.raw[11] = 0xff;
  all.raw[12] = 127;
  all.raw[13] = all.raw[14] = all.raw[15] = 255;
  const auto to_all = handle_to(a.a, all);
  const auto to_a = handle_to(a.a, own_gid(a.a));
  const Counted unsent{"datagrams_unsent"};
  ASSERT_EQ(a.receive(0, kGrh + 100, 1), 0);
  ASSERT_EQ(a.send(to_all.get(), a.number(), 0, 100), 0);
  ASSERT_EQ(a.send(to_a.get(), a.number(), 100, 100), 0);
  const auto done = collect(a.cq.get(), 3);
  ASSERT_EQ(done.size(), 3U);
  for (const ibv_wc& wc : done) EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  EXPECT_TRUE(a.same(0, a, 100, 100));
  unsent.expect({{"", 1}});
}

// Ping-pongs mostly have one receive. Whoever posts the next one before anything more comes pays no
// system call for the moment in which there was none.
TEST(UnreliableDatagram, one_receive_at_a_time_leaves_the_socket_as_it_is) {
  constexpr unsigned kTurns = 500;
  Ud a;
  Ud b;
  const auto to_b = handle_to(a.a, own_gid(b.a));
  const Counted changes{"epoll_ctl_calls"};
  for (unsigned i = 0; i < kTurns; ++i) {
    ASSERT_EQ(b.receive(0, kGrh + 100, i), 0);
    ASSERT_EQ(a.send(to_b.get(), b.number(), i, 100), 0);
    ASSERT_EQ(collect(a.cq.get(), 1).size(), 1U);
    ASSERT_EQ(collect(b.cq.get(), 1).size(), 1U);
    ASSERT_TRUE(b.same(0, a, i, 100));
  }
  EXPECT_LT(changes.grown()[""], kTurns / 2);
}

TEST(UnreliableDatagram, a_message_longer_than_the_link_carries_is_an_error_of_its_request) {
  Ud a;
  const auto ah = handle_to(a.a, own_gid(a.a));
  ASSERT_EQ(a.send(ah.get(), a.number(), 0, Ud::kHalf), 0);
  ASSERT_EQ(a.send(ah.get(), a.number(), 0, 100), 0);
  const auto done = collect(a.cq.get(), 2);
  ASSERT_EQ(done.size(), 2U);
  EXPECT_EQ(done[0].status, IBV_WC_LOC_LEN_ERR);
  EXPECT_EQ(done[1].status, IBV_WC_WR_FLUSH_ERR);
}

TEST(UnreliableDatagram, only_sends_with_an_address_can_be_posted) {
  Ud a;
  const auto ah = handle_to(a.a, own_gid(a.a));
  EXPECT_EQ(a.send(nullptr, a.number(), 0, 10), EINVAL);
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_RDMA_WRITE;
  wr.wr.ud = {.ah = ah.get(), .remote_qpn = a.number(), .remote_qkey = kQKey};
  EXPECT_EQ(post_send(a.qp.get(), wr), EINVAL);
}

TEST(UnreliableDatagram, a_shared_queue_serves_several) {
  Ud sender;
  const Adapter a;
  ibv_srq_init_attr init{};
  init.attr = {.max_wr = 16, .max_sge = 1};
  const SrqPtr srq{ibv_create_srq(a.pd.get(), &init)};
  ASSERT_NE(srq, nullptr);
  std::vector<uint8_t> memory(4 * 200);
  const MrPtr mr = a.reg(memory.data(), memory.size());
  for (size_t i = 0; i < 4; ++i) {
    ibv_sge s = sge(&memory[i * 200], 200, mr.get());
    ibv_recv_wr wr{};
    wr.wr_id = i;
    wr.sg_list = &s;
    wr.num_sge = 1;
    ibv_recv_wr* bad = nullptr;
    ASSERT_EQ(ibv_post_srq_recv(srq.get(), &wr, &bad), 0);
  }
  const CqPtr cq = a.cq(16);
  QpOptions o = kUd;
  o.srq = srq.get();
  const QpPtr one = make_qp(a, cq.get(), o);
  const QpPtr two = make_qp(a, cq.get(), o);
  for (const QpPtr* qp : {&one, &two}) {
    to_rtr(qp->get(), 0, {});
    to_rts(qp->get());
  }
  const auto ah = handle_to(sender.a, own_gid(a));
  for (size_t i = 0; i < 4; ++i) {
    const QpPtr& to = i % 2 == 0 ? one : two;
    ASSERT_EQ(sender.send(ah.get(), to->qp_num, i * 10, 100), 0);
    const auto came = collect(cq.get(), 1);
    ASSERT_EQ(came.size(), 1U);
    EXPECT_EQ(came[0].wr_id, i);
    EXPECT_EQ(came[0].qp_num, to->qp_num);
    EXPECT_EQ(std::memcmp(&memory[i * 200 + kGrh], &sender.memory[i * 10], 100), 0);
  }
}

// Nothing is kept of a peer; each message tells whose it is.
TEST(UnreliableDatagram, a_thousand_peers) {
  constexpr uint64_t kPeers = 1000;
  constexpr size_t kEach = 32;
  Ud b;
  const Adapter a;
  std::vector<uint8_t> memory(kPeers + kEach);
  for (size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<uint8_t>(i * 7 + (i >> 8));
  const MrPtr mr = a.reg(memory.data(), memory.size());
  const CqPtr cq = a.cq(2048);
  const auto to_b = handle_to(a, own_gid(b.a));
  std::vector<QpPtr> peers;
  std::set<uint32_t> numbers;
  for (uint64_t i = 0; i < kPeers; ++i) {
    QpPtr qp = make_qp(a, cq.get(), {.depth = 1, .type = IBV_QPT_UD});
    to_rtr(qp.get(), 0, {});
    to_rts(qp.get());
    numbers.insert(qp->qp_num);
    ASSERT_EQ(b.receive((i % 100) * 128, kGrh + kEach, i), 0);
    ibv_send_wr wr{};
    wr.opcode = IBV_WR_SEND;
    wr.wr.ud = {.ah = to_b.get(), .remote_qpn = b.number(), .remote_qkey = kQKey};
    ASSERT_EQ(post_send(qp.get(), wr, {sge(&memory[i], kEach, mr.get())}), 0);
    const auto came = collect(b.cq.get(), 1);
    ASSERT_EQ(came.size(), 1U) << i;
    ASSERT_EQ(came[0].src_qp, qp->qp_num);
    ASSERT_EQ(std::memcmp(b.received((i % 100) * 128) + kGrh, &memory[i], kEach), 0);
    peers.push_back(std::move(qp));
  }
  EXPECT_EQ(numbers.size(), kPeers);
}

TEST(UnreliableDatagram, resets_and_comes_back) {
  Ud a;
  Ud b;
  const auto to_b = handle_to(a.a, own_gid(b.a));
  ASSERT_EQ(b.receive(0, kGrh + 10, 1), 0);
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_ERR;
  ASSERT_EQ(ibv_modify_qp(b.qp.get(), &attr, IBV_QP_STATE), 0);
  const auto flushed = collect(b.cq.get(), 1);
  ASSERT_EQ(flushed.size(), 1U);
  EXPECT_EQ(flushed[0].status, IBV_WC_WR_FLUSH_ERR);
  attr.qp_state = IBV_QPS_RESET;
  ASSERT_EQ(ibv_modify_qp(b.qp.get(), &attr, IBV_QP_STATE), 0);
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  attr.qkey = kQKey;
  ASSERT_EQ(ibv_modify_qp(b.qp.get(), &attr,
                          IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY),
            0);
  to_rtr(b.qp.get(), 0, {});
  to_rts(b.qp.get());
  ASSERT_EQ(b.receive(0, kGrh + 10, 2), 0);
  ASSERT_EQ(a.send(to_b.get(), b.number(), 77, 10), 0);
  const auto came = collect(b.cq.get(), 1);
  ASSERT_EQ(came.size(), 1U);
  EXPECT_EQ(came[0].wr_id, 2U);
  EXPECT_TRUE(b.same(0, a, 77, 10));
}

}  // namespace
}  // namespace weft::test
