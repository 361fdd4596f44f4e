// What becomes of a queue pair whose stream ends. Data and errors over sockets are in tests/verbs.

#include "verbs/rc_transport.h"

#include "tests/unit/verbs/pair_fixture.h"
#include "verbs/send_posting.h"

namespace weft::verbs {
namespace {

struct Observer final : ConnectionObserver {
  void stream_ready(engine::Token&) override {}
  void stream_ended(engine::Token&, const work::StreamEnd& end) override { kind = end.kind; }
  void pair_gone(engine::Token&) override {}
  std::optional<work::StreamEnd::Kind> kind;
};

class RcTransportTest : public PairTest {
 protected:
  RcTransportTest() : qp(make()) { to_rts(*qp); }
  // A peer that has shaken hands and says nothing.
  port::TcpStream adopt() {
    const auto listener = port::TcpListener::listen(port::Address::from_gid(kHere, 0), 1);
    EXPECT_TRUE(listener.ok());
    auto tcp = port::TcpStream::connect({}, listener->local());
    EXPECT_TRUE(tcp.ok());
    pollfd p{.fd = listener->fd(), .events = POLLIN, .revents = 0};
    EXPECT_EQ(::poll(&p, 1, 10'000), 1);
    auto peer = listener->accept();
    EXPECT_TRUE(peer);
    auto h = qp->engine().hold();
    qp->transport().stream_adopter()->adopt(
        h.token(), {.tcp = std::move(*tcp),
                    .config = {.mpa = {.extension = true, .ird = 3, .ord = 5}, .initiator = true},
                    .early = {}});
    return std::move(*peer);
  }
  void send_nothing() {
    SendPosting posting{*qp};
    ASSERT_TRUE(
        posting.add({.wr_id = 7, .operation = work::Operation::send, .signaled = true}).ok());
    posting.commit();
  }
  template <class Condition>
  bool soon(Condition&& holds) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds{20};
    bool held = holds();
    for (; !held && std::chrono::steady_clock::now() < end; held = holds()) {
      qp->engine().progress();
    }
    return held;
  }

  Observer observer;  // hears of the queue pair's end, too
  std::unique_ptr<QueuePair> qp;
};

TEST_F(RcTransportTest, TellsWhatWasAgreedWithinWhatTheProgramSet) {
  const auto told = [&](uint8_t set) {
    QpAttributes a{.max_rd_atomic = set, .max_dest_rd_atomic = set};
    qp->transport().tell_agreed(a);
    return std::pair<int, int>{a.max_rd_atomic, a.max_dest_rd_atomic};
  };
  EXPECT_EQ(told(16), std::pair(16, 16)) << "there is no connection";
  const port::TcpStream peer = adopt();
  EXPECT_EQ(told(16), std::pair(5, 3));
  EXPECT_EQ(told(1), std::pair(1, 1));
}

// spec/rdmap 5.5: InfiniBand knows no end of a connection.
TEST_F(RcTransportTest, APeerThatLeavesIsMissedByTheNextRequest) {
  port::TcpStream peer = adopt();
  peer.close();
  ASSERT_TRUE(soon([&] {
    const auto h = qp->engine().hold();
    return !qp->connected();
  }));
  EXPECT_EQ(qp->state(), QpState::rts);
  send_nothing();
  const auto all = poll(cq, 1);
  EXPECT_EQ(all.at(0).wr_id, 7U);
  EXPECT_EQ(all.at(0).status, Status::retry_exceeded);
  EXPECT_EQ(qp->state(), QpState::err);
}

TEST_F(RcTransportTest, AConnectionOfRdmaCmEndsWithItsPeer) {
  {
    auto h = qp->engine().hold();
    qp->set_cm_managed(h.token());
    qp->observe(h.token(), &observer);
  }
  const port::TcpStream peer = adopt();
  peer.shut_write();
  ASSERT_TRUE(soon([&] {
    const auto h = qp->engine().hold();
    return observer.kind.has_value();
  }));
  EXPECT_EQ(qp->state(), QpState::err);
  EXPECT_EQ(observer.kind, work::StreamEnd::Kind::peer_closed);
}

TEST_F(RcTransportTest, RequestsWaitForTheConnection) {
  send_nothing();
  for (int i = 0; i < 100; ++i) qp->engine().progress();
  Completion none;
  EXPECT_EQ(cq.poll({&none, 1}), 0U);
  const port::TcpStream peer = adopt();
  std::byte some[64];
  const IoVec room{some, sizeof some};
  EXPECT_TRUE(soon([&] { return peer.receive({&room, 1}).bytes > 0; }));
}

}  // namespace
}  // namespace weft::verbs
