// A queue pair of RC that looks for its peer, which is a TCP socket here that answers as the test
// wants. When nothing is due the test says that time is over. How two of them come together is
// asked in tests/verbs/rc.

#include "cm/rc_bring_up.h"

#include <poll.h>

#include "cm/bring_up_block.h"
#include "port/tcp_listener.h"
#include "tests/unit/cm/one_pair.h"

namespace weft::cm {
namespace {

using wire::Wfrc;

struct Owner final : PairBringUpOwner {
  void bring_up_begun(verbs::QueuePair&, PairBringUp& b) override { begun = &b; }
  void bring_up_over(verbs::QueuePair&, uint64_t n) override {
    begun = nullptr;
    nonce = n;
  }
  SilentPorts& silent_ports() override { return silent; }
  PairBringUp* begun = nullptr;
  uint64_t nonce = 0;
  SilentPorts silent;
};

// The other end of connections: keeps the last Request, for the test to answer.
struct Peer final : PassiveStartHandler {
  void request_came(engine::Token&, PassiveStart& s, const mpa::Responder::Request& r) override {
    start = &s;
    request = Wfrc::parse(r.private_data);
    ++requests;
  }
  void start_gone(engine::Token&, PassiveStart& s) override {
    if (start == &s) start = nullptr;
    ++gone;
  }
  PassiveStart* start = nullptr;
  std::optional<Wfrc> request;
  int requests = 0;
  int gone = 0;
};

class RcBringUpTest : public testing::Test {
 protected:
  RcBringUpTest() : pair_(verbs::QpType::rc) {
    pair_.to_init();
    auto h = pair_.hold();
    pair_.qp().set_cm_managed(h.token());  // the adapter's own bring-up leaves it alone
  }
  ~RcBringUpTest() override {
    auto h = pair_.hold();
    if (owner_.begun != nullptr) owner_.begun->cancel(h.token());
    if (peer_.start != nullptr) peer_.start->drop(h.token());
  }
  // Where a peer with a higher number listens, or one with a lower.
  void listen(bool higher) {
    uint16_t port = port_of(pair_.qp().number());
    while (!listener_) {
      port = static_cast<uint16_t>(higher ? port + 1 : port - 1);
      auto l = port::TcpListener::listen(port::Address::from_gid(kHere, port), 4);
      if (l.ok()) listener_.emplace(std::move(*l));
    }
    number_ = make_qpn(port, 9);
  }
  void start() {
    pair_.to_rtr(number_);
    auto h = pair_.hold();
    RcBringUp::start(h.token(), owner_, pair_.qp());
  }
  void time_is_over() {
    auto h = pair_.hold();
    owner_.begun->on_deadline(h.token());
  }
  template <class Condition>
  bool soon(Condition&& holds) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds{20};
    const auto asked = [&] {
      auto h = pair_.hold();
      return holds();
    };
    bool held = asked();
    for (; !held && std::chrono::steady_clock::now() < end; held = asked()) {
      pair_.engine().progress();
    }
    return held;
  }
  // The next Request, from a connection of its own.
  void await_request() {
    pollfd p{.fd = listener_->fd(), .events = POLLIN, .revents = 0};
    ASSERT_EQ(::poll(&p, 1, 20'000), 1);
    auto tcp = listener_->accept();
    ASSERT_TRUE(tcp);
    int before = 0;
    {
      auto h = pair_.hold();
      before = peer_.requests;
      PassiveStart::start(h.token(), peer_, std::move(*tcp));
    }
    ASSERT_TRUE(soon([&] { return peer_.requests > before; }));
    ASSERT_TRUE(peer_.request);
  }
  void answer(Wfrc::Code code) {
    auto h = pair_.hold();
    refuse(h.token(), *std::exchange(peer_.start, nullptr), *peer_.request, code,
           stats::BringUpRefusal::not_your_peer);
  }
  std::optional<Started> accept(Bytes private_data) {
    auto h = pair_.hold();
    return std::exchange(peer_.start, nullptr)
        ->accept(h.token(), {.peer_to_peer = true, .ird = 1, .ord = 1}, private_data);
  }
  std::vector<std::byte> reply() {
    return encode({.source_qpn = number_,
                   .destination_qpn = pair_.qp().number(),
                   .nonce = peer_.request->nonce,
                   .source_gid = kHere,
                   .destination_gid = kHere});
  }
  uint64_t answers(Wfrc::Code code) {
    return pair_.engine().counters().bring_up_answer[static_cast<size_t>(code)].value();
  }
  bool connected() {
    return soon([&] { return owner_.begun == nullptr; });
  }

  OnePair pair_;
  Owner owner_;
  Peer peer_;
  std::optional<port::TcpListener> listener_;
  Qpn number_;
};

TEST_F(RcBringUpTest, TheLowerNumberCallsAndSaysWhoItIs) {
  listen(true);
  start();
  await_request();
  EXPECT_FALSE(peer_.request->fallback);
  EXPECT_EQ(peer_.request->source_qpn, pair_.qp().number());
  EXPECT_EQ(peer_.request->destination_qpn, number_);
  EXPECT_EQ(peer_.request->source_gid, kHere);
  EXPECT_EQ(peer_.request->destination_gid, kHere);
  const auto other_end = accept(reply());
  ASSERT_TRUE(other_end);
  ASSERT_TRUE(connected());
  EXPECT_EQ(owner_.nonce, peer_.request->nonce);
  const auto h = pair_.hold();
  EXPECT_TRUE(pair_.qp().connected());
}

// spec/addressing 5.5
TEST_F(RcBringUpTest, TheHigherNumberCallsWhenNobodyCalledIt) {
  listen(false);
  start();
  pollfd p{.fd = listener_->fd(), .events = POLLIN, .revents = 0};
  EXPECT_EQ(::poll(&p, 1, 0), 0) << "it waits first";
  time_is_over();
  await_request();
  EXPECT_TRUE(peer_.request->fallback);
}

TEST_F(RcBringUpTest, APeerThatIsNotReadyIsCalledAgain) {
  listen(true);
  start();
  await_request();
  const Wfrc first = *peer_.request;
  const uint64_t before = answers(Wfrc::Code::not_ready);
  answer(Wfrc::Code::not_ready);
  await_request();
  EXPECT_NE(peer_.request->nonce, first.nonce) << "a Request of its own";
  EXPECT_EQ(answers(Wfrc::Code::not_ready), before + 1);
}

// Its program may still change its mind, for two seconds.
TEST_F(RcBringUpTest, APeerThatKnowsNobodyIsCalledAgain) {
  listen(true);
  start();
  await_request();
  answer(Wfrc::Code::not_your_peer);
  await_request();
  const auto h = pair_.hold();
  EXPECT_NE(owner_.begun, nullptr);
  EXPECT_NE(pair_.qp().state(), verbs::QpState::err);
}

// The port has changed hands.
TEST_F(RcBringUpTest, AServerThatIsNoneOfWeftsIsNotThePeer) {
  listen(true);
  start();
  await_request();
  const uint64_t before = answers(Wfrc::Code::ok);
  const auto other_end = accept({});
  ASSERT_TRUE(other_end);
  ASSERT_TRUE(soon([&] { return answers(Wfrc::Code::ok) == before + 1; }));
  await_request();
  const auto h = pair_.hold();
  EXPECT_FALSE(pair_.qp().connected());
}

TEST_F(RcBringUpTest, ToItselfItIsConnectedAtOnce) {
  number_ = pair_.qp().number();
  start();
  const auto h = pair_.hold();
  EXPECT_EQ(owner_.begun, nullptr);
  EXPECT_NE(owner_.nonce, 0U);
  EXPECT_TRUE(pair_.qp().connected());
}

TEST_F(RcBringUpTest, WhoIsCancelledClosesItsConnection) {
  listen(true);
  start();
  await_request();
  {
    auto h = pair_.hold();
    owner_.begun->cancel(h.token());
    EXPECT_EQ(owner_.begun, nullptr);
    EXPECT_EQ(owner_.nonce, 0U) << "it is not connected";
  }
  EXPECT_TRUE(soon([&] { return peer_.gone == 1; }));
}

// --- both call. The peer's Request comes by a connection of its own.
class RcBringUpCrossing : public RcBringUpTest {
 protected:
  // The queue pair's own Request is out, and here is the peer's.
  void cross(bool fallback, uint64_t nonce) {
    listen(true);
    start();
    await_request();
    own_ = *peer_.request;
    theirs_ = {.fallback = fallback,
               .source_qpn = number_,
               .destination_qpn = pair_.qp().number(),
               .nonce = nonce != 0 ? nonce : own_.nonce - 1,
               .source_gid = kHere,
               .destination_gid = kHere};
    initiator_.emplace(mpa::Offer{.peer_to_peer = true});
    auto frame = initiator_->request(encode(theirs_));
    auto tcp = port::TcpStream::connect({}, listener_->local());
    ASSERT_TRUE(tcp.ok());
    caller_ = std::move(*tcp);
    const IoVec all{frame.data(), frame.size()};
    pollfd p{.fd = caller_.fd(), .events = POLLOUT, .revents = 0};
    ASSERT_EQ(::poll(&p, 1, 20'000), 1);
    ASSERT_EQ(caller_.send({&all, 1}).bytes, frame.size());
    PassiveStart* const own = peer_.start;
    await_request();
    auto h = pair_.hold();
    PassiveStart& came = *std::exchange(peer_.start, own);
    owner_.begun->request_came(h.token(), came, *peer_.request);
  }
  // What the peer hears of its own Request.
  std::optional<Wfrc> heard() {
    std::vector<std::byte> all;
    const size_t fixed = wire::MpaStart::kSize + wire::MpaEnhanced::kSize;
    soon([&] {
      std::byte some[256];
      const IoVec room{some, sizeof some};
      const auto t = caller_.receive({&room, 1});
      if (!t.would_block) all.insert(all.end(), some, some + t.bytes);
      return all.size() >= fixed + Wfrc::kSize || t.end || t.error != 0;
    });
    if (all.size() < fixed + Wfrc::kSize) return {};
    return Wfrc::parse(Bytes{all}.subspan(fixed));
  }

  Wfrc own_;
  Wfrc theirs_;
  std::optional<mpa::Initiator> initiator_;
  port::TcpStream caller_;
};

// spec/addressing 5.5: that of the side that was to call wins.
TEST_F(RcBringUpCrossing, AFallbackGivesWay) {
  cross(true, UINT64_MAX);
  const auto answer = heard();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->code, Wfrc::Code::role_conflict);
  EXPECT_NE(owner_.begun, nullptr);
  EXPECT_EQ(peer_.gone, 0) << "its own goes on";
}

TEST_F(RcBringUpCrossing, OfTwoOfOneKindTheLargerNonceWins) {
  cross(false, UINT64_MAX);
  EXPECT_EQ(owner_.begun, nullptr);
  EXPECT_EQ(owner_.nonce, UINT64_MAX);
  const auto answer = heard();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->code, Wfrc::Code::ok);
  EXPECT_EQ(answer->source_qpn, pair_.qp().number());
  EXPECT_EQ(answer->nonce, UINT64_MAX) << "of the Request that it answers";
  EXPECT_TRUE(soon([&] { return peer_.gone == 1; })) << "its own is closed";
}

TEST_F(RcBringUpCrossing, TheSmallerNonceLoses) {
  cross(false, 0);
  const auto answer = heard();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->code, Wfrc::Code::role_conflict);
  EXPECT_NE(owner_.begun, nullptr);
}

}  // namespace
}  // namespace weft::cm
