// UC: what a receive tells besides its bytes. The key that the message took back (spec/wdp-uc 3.8),
// the immediate, and whether the sender asked for an event (spec/wdp-uc 2.2).

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <poll.h>

#include "tests/support/counted.h"
#include "tests/verbs/raw_datagrams.h"

namespace weft::test {
namespace {

using wire::Opcode;

constexpr QpOptions kUc{.type = IBV_QPT_UC};
constexpr size_t kInbox = 512 << 10;  // where receives are; windows are before it

// Receives complete on a queue of their own, which has a channel.
struct Side {
  Side()
      : memory(1 << 20),
        mr(a.reg(memory.data(), memory.size(), kAllAccess | IBV_ACCESS_MW_BIND)),
        channel(ibv_create_comp_channel(a.context.get())),
        sends(a.cq(64)),
        receives(a.cq(64, channel.get())) {
    ibv_qp_init_attr init{};
    init.send_cq = sends.get();
    init.recv_cq = receives.get();
    init.qp_type = IBV_QPT_UC;
    init.cap = {64, 64, 1, 1, 0};
    qp.reset(ibv_create_qp(a.pd.get(), &init));
    check(qp != nullptr, "ibv_create_qp");
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_INIT;
    attr.port_num = 1;
    attr.qp_access_flags = kAllAccess;
    check_errno(ibv_modify_qp(qp.get(), &attr,
                              IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
                "INIT");
  }
  void pattern(uint32_t seed) {
    for (size_t i = 0; i < memory.size(); ++i) {
      memory[i] = static_cast<uint8_t>(i * seed + (i >> 8) + 1);
    }
  }
  void receive(uint64_t wr_id, size_t n = 300'000) {
    check_errno(post_recv(qp.get(), wr_id, {sge(&memory[kInbox], n, mr.get())}), "post_recv");
  }
  // Done when this returns: from the memory at `offset`.
  void send(ibv_send_wr wr, size_t offset = 0, size_t n = 100) {
    wr.send_flags |= IBV_SEND_SIGNALED;
    std::vector<ibv_sge> piece;
    if (wr.opcode != IBV_WR_BIND_MW) piece.push_back(sge(&memory[offset], n, mr.get()));
    check_errno(post_send(qp.get(), wr, piece), "post_send");
    const auto done = collect(sends.get(), 1);
    check(done.size() == 1 && done[0].status == IBV_WC_SUCCESS, "a request completes");
  }
  ibv_wc received() const {
    const auto done = collect(receives.get(), 1);
    check(done.size() == 1 && done[0].status == IBV_WC_SUCCESS, "a receive completes");
    return done[0];
  }
  bool nothing_received() const {
    ibv_wc wc;
    return ibv_poll_cq(receives.get(), 1, &wc) == 0;
  }
  // Of the channel.
  bool has_event(int ms = 0) const {
    pollfd p{channel->fd, POLLIN, 0};
    return ::poll(&p, 1, ms) == 1;
  }
  void take_event() const {
    check(has_event(10'000), "an event");
    ibv_cq* cq = nullptr;
    void* context = nullptr;
    check(ibv_get_cq_event(channel.get(), &cq, &context) == 0 && cq == receives.get(), "its queue");
    ibv_ack_cq_events(cq, 1);
  }
  // This side sent what its peer does not allow.
  void is_told() const {
    pollfd p{a.context->async_fd, POLLIN, 0};
    ASSERT_EQ(::poll(&p, 1, 10'000), 1);
    ibv_async_event event{};
    ASSERT_EQ(ibv_get_async_event(a.context.get(), &event), 0);
    EXPECT_EQ(event.event_type, IBV_EVENT_QP_ACCESS_ERR);
    ibv_ack_async_event(&event);
  }

  Adapter a;
  std::vector<uint8_t> memory;
  MrPtr mr;
  ChannelPtr channel;
  CqPtr sends;
  CqPtr receives;
  QpPtr qp;
};

// The first kInbox bytes, through a window of type 2 that the queue pair binds.
class Window {
 public:
  explicit Window(Side& side) : side_(side), mw_(ibv_alloc_mw(side.a.pd.get(), IBV_MW_TYPE_2)) {
    check(mw_ != nullptr, "ibv_alloc_mw");
    bind();
  }
  void bind() {
    ibv_send_wr wr{};
    wr.opcode = IBV_WR_BIND_MW;
    wr.bind_mw = {mw_.get(),
                  ibv_inc_rkey(mw_->rkey),
                  {side_.mr.get(), reinterpret_cast<uintptr_t>(side_.memory.data()), kInbox,
                   IBV_ACCESS_REMOTE_WRITE}};
    side_.send(wr);
    mw_->rkey = wr.bind_mw.rkey;
  }
  uint32_t key() const { return mw_->rkey; }

 private:
  Side& side_;
  std::unique_ptr<ibv_mw, Freer<ibv_mw, ibv_dealloc_mw>> mw_;
};

struct Connected {
  Connected() {
    a.pattern(3);
    connect(a.qp.get(), own_gid(a.a), b.qp.get(), own_gid(b.a), kUc);
  }
  ibv_send_wr write(uint32_t key, size_t offset) const {
    ibv_send_wr wr{};
    wr.opcode = IBV_WR_RDMA_WRITE;
    wr.wr.rdma = {reinterpret_cast<uintptr_t>(&b.memory[offset]), key};
    return wr;
  }
  bool same(size_t here, size_t there, size_t n) const {
    return std::memcmp(&a.memory[here], &b.memory[there], n) == 0;
  }
  Side a;
  Side b;
};

ibv_send_wr send_and_take_back(uint32_t key) {
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_SEND_WITH_INV;
  wr.invalidate_rkey = key;
  return wr;
}

TEST(UcReceiveTells, which_window_is_closed) {
  Connected c;
  Window window(c.b);
  uint64_t round = 0;
  for (const size_t n : {10UL, 200'000UL}) {
    if (round > 0) window.bind();
    c.a.send(c.write(window.key(), 1000), 500, 2000);
    c.b.receive(++round);
    c.a.send(send_and_take_back(window.key()), 7, n);
    const ibv_wc came = c.b.received();
    EXPECT_EQ(came.wr_id, round);
    EXPECT_EQ(came.opcode, IBV_WC_RECV);
    EXPECT_EQ(came.byte_len, n);
    EXPECT_EQ(came.wc_flags, static_cast<unsigned>(IBV_WC_WITH_INV));
    EXPECT_EQ(came.invalidated_rkey, window.key());
    EXPECT_TRUE(c.same(7, kInbox, n));
    // What was written before it is there; what is written now is not.
    EXPECT_TRUE(c.same(500, 1000, 2000));
    c.a.send(c.write(window.key(), 1000), 50'000, 2000);
    c.a.is_told();
    EXPECT_TRUE(c.same(500, 1000, 2000));
  }
  // The queue pair goes on, and a Send that takes nothing back says so.
  c.b.receive(77);
  ibv_send_wr plain{};
  plain.opcode = IBV_WR_SEND;
  c.a.send(plain, 3, 100);
  EXPECT_EQ(c.b.received().wc_flags, 0U);
}

// spec/wdp-uc 3.9, InfiniBand 10.6.2: only a window of type 2 of this queue pair's can be taken
// back from afar. The receive serves the next message.
TEST(UcReceiveTells, nothing_of_what_is_not_the_peers_to_take_back) {
  Connected c;
  Connected others;
  const Window foreign(others.b);
  c.b.receive(1);
  for (const uint32_t key : {c.b.mr->rkey, foreign.key(), c.b.mr->rkey ^ 0x80}) {
    const Counted refused("datagram_dropped");
    c.a.send(send_and_take_back(key), 0, 5000);
    c.a.is_told();
    EXPECT_TRUE(c.b.nothing_received());
    refused.expect({{"protection", 1}});
  }
  // Region and window are as before.
  c.a.send(c.write(c.b.mr->rkey, 9000), 100, 3000);
  others.a.send(others.write(foreign.key(), 9000), 100, 3000);
  others.b.receive(2);
  ibv_send_wr plain{};
  plain.opcode = IBV_WR_SEND;
  c.a.send(plain, 40, 100);
  others.a.send(plain, 40, 100);
  const ibv_wc came = c.b.received();
  EXPECT_EQ(came.wr_id, 1U);
  EXPECT_EQ(came.wc_flags, 0U);
  EXPECT_TRUE(c.same(40, kInbox, 100));
  EXPECT_TRUE(c.same(100, 9000, 3000));
  EXPECT_EQ(others.b.received().wr_id, 2U);
  EXPECT_TRUE(others.same(100, 9000, 3000));
}

// --- a peer that sends a message in two parts

class UcHalfSent : public testing::Test {
 protected:
  static constexpr uint16_t kStride = 1000;

  UcHalfSent() {
    to_rtr(b.qp.get(), peer.qpn().value(), gid, kUc);
    to_rts(b.qp.get(), kUc);
    const Qpn number{b.qp->qp_num};
    peer.call(gid, port_of(number), number);
    session.emplace(peer, peer.answered());
    window.emplace(b);
  }
  // Segment `i` of the two that a Send has which takes the window back.
  void say_half(uint32_t msn, uint32_t i) {
    session->say({.msn = Msn{msn},
                  .mo = MessageOffset{i * kStride},
                  .mlen = 2 * kStride,
                  .last = i == 1,
                  .opcode = Opcode::send_inv,
                  .stride = kStride,
                  .stag = Stag{window->key()}},
                 Bytes{message}.subspan(i * kStride, kStride));
  }
  void write(uint32_t msn, size_t offset) {
    session->say({.msn = Msn{msn},
                  .mlen = kStride,
                  .last = true,
                  .opcode = Opcode::write,
                  .stride = kStride,
                  .stag = Stag{window->key()},
                  .to = TaggedOffset{reinterpret_cast<uintptr_t>(&b.memory[offset])}},
                 written);
  }
  bool is_at(const Buffer& data, size_t offset) const {
    return std::memcmp(data.data(), &b.memory[offset], data.size()) == 0;
  }
  // Within ten seconds.
  bool comes_to(size_t offset) const {
    const time_t until = time(nullptr) + 10;
    while (!is_at(written, offset) && time(nullptr) < until) (void)b.nothing_received();
    return is_at(written, offset);
  }

  Side b;
  const ibv_gid gid = own_gid(b.a);
  RawDatagrams peer{gid, RawDatagrams::kLow};
  std::optional<RawUcSession> session;
  std::optional<Window> window;
  const Buffer message = pattern(2 * kStride, 3);
  const Buffer written = pattern(kStride, 5);
};

// spec/wdp-uc 3.8: Send with Invalidate: invalidate at completion only.
TEST_F(UcHalfSent, a_window_is_open_until_all_of_the_message_is_there) {
  b.receive(1);
  say_half(1, 0);
  write(2, 0);
  ASSERT_TRUE(comes_to(0));
  say_half(1, 1);
  const ibv_wc came = b.received();
  EXPECT_EQ(came.byte_len, message.size());
  EXPECT_EQ(came.wc_flags, static_cast<unsigned>(IBV_WC_WITH_INV));
  EXPECT_EQ(came.invalidated_rkey, window->key());
  EXPECT_TRUE(is_at(message, kInbox));
  write(3, 20'000);
  peer.hear(wire::CtlType::err);
  EXPECT_EQ(b.memory[20'000], 0);
}

// Its receive is the next message's, and its second half comes too late.
TEST_F(UcHalfSent, a_window_stays_open_where_the_message_is_given_up) {
  b.receive(1);
  say_half(1, 0);
  session->say(
      {.msn = Msn{2}, .mlen = kStride, .last = true, .opcode = Opcode::send, .stride = kStride},
      written);
  const ibv_wc came = b.received();
  EXPECT_EQ(came.wr_id, 1U);
  EXPECT_EQ(came.byte_len, written.size());
  EXPECT_EQ(came.wc_flags, 0U);
  EXPECT_TRUE(is_at(written, kInbox));
  say_half(1, 1);
  write(3, 0);
  EXPECT_TRUE(comes_to(0));
  EXPECT_TRUE(b.nothing_received());
}

// --- events

struct Message {
  ibv_wr_opcode opcode;
  ibv_wc_opcode comes_as;
  unsigned flags;
};
constexpr Message kMessages[] = {
    {IBV_WR_SEND, IBV_WC_RECV, 0},
    {IBV_WR_SEND_WITH_IMM, IBV_WC_RECV, IBV_WC_WITH_IMM},
    {IBV_WR_SEND_WITH_INV, IBV_WC_RECV, IBV_WC_WITH_INV},
    {IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WC_RECV_RDMA_WITH_IMM, IBV_WC_WITH_IMM},
};

// InfiniBand 11.4.2.2: who asks for solicited ones alone is woken by no other.
TEST(UcReceiveTells, an_event_where_the_sender_asked_for_it) {
  Connected c;
  std::optional<Window> window;
  uint32_t number = 0;
  const auto pass = [&](const Message& m, size_t n, unsigned send_flags) {
    ibv_send_wr wr = c.write(c.b.mr->rkey, kInbox);
    wr.opcode = m.opcode;
    wr.send_flags = send_flags;
    if (m.opcode == IBV_WR_SEND_WITH_INV) {
      wr.invalidate_rkey = window.emplace(c.b).key();
    } else if (m.flags != 0) {
      wr.imm_data = htonl(0x01020300 + number);
    }
    const size_t from = 100 + 3 * number;
    c.b.receive(++number);
    c.a.send(wr, from, n);
    const ibv_wc came = c.b.received();
    EXPECT_EQ(came.wr_id, number);
    EXPECT_EQ(came.opcode, m.comes_as);
    EXPECT_EQ(came.wc_flags, m.flags);
    EXPECT_EQ(came.byte_len, n);
    // The same word of the completion, and of the request.
    if (m.flags != 0) {
      EXPECT_EQ(came.imm_data, wr.imm_data);
    }
    EXPECT_TRUE(c.same(from, kInbox, n));
  };
  for (const Message& m : kMessages) {
    for (const size_t n : {50UL, 150'000UL}) {
      SCOPED_TRACE(testing::Message() << m.opcode << ' ' << n);
      ASSERT_EQ(ibv_req_notify_cq(c.b.receives.get(), 1), 0);
      // What would be wrongly told of the first one is out before the second is there.
      pass(m, n, 0);
      pass(m, n, 0);
      EXPECT_FALSE(c.b.has_event());
      pass(m, n, IBV_SEND_SOLICITED);
      c.b.take_event();
      pass(m, n, IBV_SEND_SOLICITED);
      EXPECT_FALSE(c.b.has_event()) << "it was asked for one";
    }
  }
}

}  // namespace
}  // namespace weft::test
