#include "cm/active_start.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <thread>

#include "port/tcp_listener.h"
#include "rdmap/limits.h"

namespace weft::cm {
namespace {

using namespace std::chrono_literals;
using engine::Token;

using stats::DialEnd;

class NobodyCares final : public ActiveStartHandler {
 public:
  void start_connected(Token&, ActiveStart&, Started&&) override { ++told; }
  void start_failed(Token&, ActiveStart&, ActiveStartFailure&& failure) override {
    ++told;
    kind = failure.kind;
  }
  std::atomic<int> told{0};  // by whoever holds the engine
  ActiveStartFailure::Kind kind{};
};

// Both ends of a start-up: weft's engine on one side, bare bytes on the other.
// Length, tagged and last, RDMA Write.
const std::vector<std::byte> kEmptyWrite{std::byte{0}, std::byte{14}, std::byte{0xc1},
                                         std::byte{0x40}};

class ActiveStartTest : public testing::Test {
 protected:
  void SetUp() override {
    auto e = engine::Engine::create(0);
    ASSERT_TRUE(e.ok());
    engine_ = std::move(*e);
    auto l = port::TcpListener::listen(port::Address::from_gid(Gid::from_ipv4(0x7f000001), 0), 1);
    ASSERT_TRUE(l.ok());
    listener_.emplace(std::move(*l));
  }
  ActiveStart& begin(bool peer_to_peer) {
    auto h = engine_->hold();
    return ActiveStart::start(
        h.token(), handler_,
        {.to = listener_->local(),
         .offer = {.extension = false, .peer_to_peer = peer_to_peer, .ird = 1, .ord = 1},
         .timeout = 30s});
  }
  // A start-up that fails: how it was counted, once, and told.
  void expect_failure(const ActiveStartPlan& plan, DialEnd counted, ActiveStartFailure::Kind told) {
    const uint64_t before = failed(counted);
    const int heard = handler_.told;
    {
      auto h = engine_->hold();
      ActiveStart::start(h.token(), handler_, plan);
    }
    const auto until = std::chrono::steady_clock::now() + 10s;
    while (handler_.told == heard && std::chrono::steady_clock::now() < until) engine_->progress();
    const auto h = engine_->hold();
    EXPECT_EQ(handler_.told, heard + 1);
    EXPECT_EQ(handler_.kind, told);
    EXPECT_EQ(failed(counted), before + 1);
  }
  uint64_t failed(DialEnd why) const {
    return engine_->counters().dial_failed[static_cast<size_t>(why)].value();
  }
  void accept() {
    pollfd p{.fd = listener_->fd(), .events = POLLIN, .revents = 0};
    ASSERT_EQ(::poll(&p, 1, 10'000), 1);
    auto tcp = listener_->accept();
    ASSERT_TRUE(tcp);
    peer_.emplace(std::move(*tcp));
  }
  void cancel(ActiveStart& d) {
    auto h = engine_->hold();
    d.cancel(h.token());
  }
  // What comes until there are `n` bytes or the end.
  std::vector<std::byte> hear(size_t n) {
    std::vector<std::byte> all;
    ended_ = false;
    while (all.size() < n) {
      engine_->progress();
      std::byte buffer[256];
      const IoVec piece{buffer, std::min(sizeof buffer, n - all.size())};
      const auto t = peer_->receive({&piece, 1});
      if (t.would_block) continue;
      if (t.end || t.error != 0) {
        ended_ = true;
        break;
      }
      all.insert(all.end(), buffer, buffer + t.bytes);
    }
    return all;
  }
  // siw may sleep over the RTR, and would wake to the end.
  void hear_the_kicks() {
    const auto kicks = hear(3 * 20);
    ASSERT_EQ(kicks.size(), 3U * 20);
    for (size_t i = 0; i < kicks.size(); i += 20) {
      EXPECT_EQ((std::vector<std::byte>{kicks.begin() + static_cast<long>(i),
                                        kicks.begin() + static_cast<long>(i) + 4}),
                kEmptyWrite)
          << i;
    }
  }
  void say(const std::vector<uint8_t>& bytes) {
    const IoVec piece{const_cast<uint8_t*>(bytes.data()), bytes.size()};
    ASSERT_EQ(peer_->send({&piece, 1}).bytes, bytes.size());
  }

  NobodyCares handler_;
  std::unique_ptr<engine::Engine> engine_;
  std::optional<port::TcpListener> listener_;
  std::optional<port::TcpStream> peer_;
  bool ended_ = false;
};

constexpr size_t kRequest = 24;  // with the enhanced block

std::vector<uint8_t> reply(uint8_t ird_high, uint8_t ord_high) {
  std::vector<uint8_t> bytes;
  for (const char c : std::string_view{"MPA ID Rep Frame"})
    bytes.push_back(static_cast<uint8_t>(c));
  // S and C, revision 2, PD_Length 4, IRD 1, ORD 1.
  for (const uint8_t b : {uint8_t{0x50}, uint8_t{2}, uint8_t{0}, uint8_t{4}, ird_high, uint8_t{1},
                          ord_high, uint8_t{1}}) {
    bytes.push_back(b);
  }
  return bytes;
}

// spec/mpa 2.5.6: a kernel with siw dies of a connection that closes between its Reply and the
// RTR, or right behind that.
TEST_F(ActiveStartTest, GivenUpBeforeTheReplyItStillSendsTheRtrAndClosesLater) {
  struct Kind {
    uint8_t ird_high;  // A, B
    uint8_t ord_high;  // C, D
    size_t fpdu;
    uint8_t opcode;
  };
  for (const Kind& k : {Kind{0xc0, 0, 8, 0}, Kind{0x80, 0x80, 20, 0}, Kind{0x80, 0x40, 52, 1}}) {
    ActiveStart& d = begin(true);
    accept();
    ASSERT_EQ(hear(kRequest).size(), kRequest);
    cancel(d);
    const auto before = std::chrono::steady_clock::now();
    say(reply(k.ird_high, k.ord_high));
    const auto rtr = hear(k.fpdu);
    ASSERT_EQ(rtr.size(), k.fpdu);
    if (k.fpdu > 8) {
      EXPECT_EQ(static_cast<uint8_t>(rtr[3]) & 0x0f, k.opcode);
    }
    hear_the_kicks();
    EXPECT_GE(std::chrono::steady_clock::now() - before, rdmap::kKickAfter[2]);
    EXPECT_TRUE(hear(1).empty());
    EXPECT_TRUE(ended_);
    EXPECT_GE(std::chrono::steady_clock::now() - before, rdmap::kRtrSettles);
    EXPECT_EQ(handler_.told, 0);
  }
}

// The same rule, and RFC 6581 section 9.1: the Reply's ORD of 0x2001 is more than there is.
TEST_F(ActiveStartTest, AReplyThatNobodyCanLiveWithGetsTheRtrBeforeTheTerminate) {
  begin(true);
  accept();
  ASSERT_EQ(hear(kRequest).size(), kRequest);
  const auto before = std::chrono::steady_clock::now();
  say(reply(0x80, 0xa0));
  const auto rtr = hear(20);
  ASSERT_EQ(rtr.size(), 20U);
  EXPECT_EQ((std::vector<std::byte>{rtr.begin(), rtr.begin() + 4}), kEmptyWrite);
  {
    const auto h = engine_->hold();  // the engine's own thread may be in the middle of it
    EXPECT_EQ(handler_.told, 1);
    EXPECT_EQ(failed(DialEnd::bad_reply), 1U);
  }
  hear_the_kicks();
  const auto terminate = hear(2 + 18 + 4 + 4);
  EXPECT_GE(std::chrono::steady_clock::now() - before, rdmap::kRtrSettles);
  ASSERT_EQ(terminate.size(), 2U + 18 + 4 + 4);
  EXPECT_EQ(static_cast<uint8_t>(terminate[3]) & 0x0f, 7);
  EXPECT_EQ(static_cast<uint8_t>(terminate[20]), 0x20);
  EXPECT_EQ(static_cast<uint8_t>(terminate[21]), 6);
  EXPECT_TRUE(hear(1).empty());
  EXPECT_TRUE(ended_);
}

// A firewall that drops what begins a connection looks like this, and so does a listener whose
// queue is full: one of the backlog and one beyond it are let in.
TEST_F(ActiveStartTest, APeerThatDoesNotAnswerIsToldOfOnce) {
  std::vector<port::TcpStream> queue;
  for (int i = 0; i < 2; ++i) {
    auto tcp = port::TcpStream::connect({}, listener_->local());
    ASSERT_TRUE(tcp.ok());
    pollfd p{.fd = tcp->fd(), .events = POLLOUT, .revents = 0};
    ASSERT_EQ(::poll(&p, 1, 20'000), 1);
    queue.push_back(std::move(*tcp));
  }
  testing::internal::CaptureStderr();
  ActiveStart& d = begin(true);
  const auto silent = [&] {
    return engine_->counters().peer_silent[static_cast<size_t>(stats::Silence::connecting)].value();
  };
  const auto until = std::chrono::steady_clock::now() + 25s;
  while (silent() == 0 && std::chrono::steady_clock::now() < until) engine_->progress();
  cancel(d);
  const std::string words = testing::internal::GetCapturedStderr();
  EXPECT_EQ(silent(), 1U);
  EXPECT_EQ(handler_.told, 0);
  EXPECT_NE(words.find("warning: " + listener_->local().to_string() +
                       " does not answer an attempt to connect over TCP"),
            std::string::npos)
      << words;
  EXPECT_NE(words.find("firewall"), std::string::npos) << words;
}

// One that takes its time has acknowledged the Request.
TEST_F(ActiveStartTest, APeerThatThinksAboutItIsNotSilent) {
  ActiveStart& d = begin(true);
  accept();
  ASSERT_EQ(hear(kRequest).size(), kRequest);
  {
    auto h = engine_->hold();
    d.on_deadline(h.token());  // as after 3 s
    EXPECT_EQ(
        engine_->counters().peer_silent[static_cast<size_t>(stats::Silence::connecting)].value(),
        0U);
  }
  cancel(d);
}

// A process that did not run meanwhile still sends them, and gives the peer time to wake up.
TEST_F(ActiveStartTest, KicksThatComeLatePutOffTheEnd) {
  ActiveStart& d = begin(true);
  accept();
  ASSERT_EQ(hear(kRequest).size(), kRequest);
  cancel(d);
  say(reply(0x80, 0x80));
  ASSERT_EQ(hear(20).size(), 20U);
  {
    const auto h = engine_->hold();
    std::this_thread::sleep_for(rdmap::kRtrSettles + 50ms);
  }
  const auto before = std::chrono::steady_clock::now();
  hear_the_kicks();
  EXPECT_TRUE(hear(1).empty());
  EXPECT_TRUE(ended_);
  EXPECT_GE(std::chrono::steady_clock::now() - before, rdmap::kRtrSettles - rdmap::kKickAfter[2]);
}

TEST_F(ActiveStartTest, GivenUpWithoutAnRtrToSendItClosesAtOnce) {
  ActiveStart& d = begin(false);
  accept();
  ASSERT_EQ(hear(kRequest).size(), kRequest);
  cancel(d);
  EXPECT_TRUE(hear(1).empty());
  EXPECT_TRUE(ended_);
  EXPECT_EQ(handler_.told, 0);
}

TEST_F(ActiveStartTest, WhyItCameToNothingIsCounted) {
  const port::Address free = listener_->local();
  listener_.reset();
  expect_failure({.to = free, .timeout = 30s}, DialEnd::nobody_listens,
                 ActiveStartFailure::Kind::refused);
  // No way leads from the loopback address to another host.
  expect_failure({.from = port::Address::from_gid(Gid::from_ipv4(0x7f000001), 0),
                  .to = port::Address::from_gid(Gid::from_ipv4(0xc0000201), 9),
                  .timeout = 30s},
                 DialEnd::unreachable, ActiveStartFailure::Kind::unreachable);
  // spec/addressing 5.4: what the kernel does where it picks the target as the source.
  expect_failure({.from = free, .to = free, .timeout = 30s}, DialEnd::to_itself,
                 ActiveStartFailure::Kind::refused);
}

// A port that the program has been told of before there was a connection, and somebody else has
// now.
TEST_F(ActiveStartTest, AnotherPortWillDoWhereTheProgramDidNotChooseIt) {
  const auto other =
      port::TcpListener::listen(port::Address::from_gid(Gid::from_ipv4(0x7f000001), 0), 1);
  ASSERT_TRUE(other.ok());
  const ActiveStartPlan chosen{.from = other->local(), .to = listener_->local(), .timeout = 30s};
  expect_failure(chosen, DialEnd::unreachable, ActiveStartFailure::Kind::unreachable);
  ActiveStartPlan any = chosen;
  any.any_port = true;
  {
    auto h = engine_->hold();
    ActiveStart::start(h.token(), handler_, any);
  }
  accept();
  EXPECT_NE(peer_->peer().port(), other->local().port());
}

// The port is held by the socket that connects, from before it is known where to.
TEST_F(ActiveStartTest, ABoundSocketIsTheOneThatConnects) {
  auto bound = port::TcpListener::bind(port::Address::from_gid(Gid::from_ipv4(0x7f000001), 0));
  ASSERT_TRUE(bound.ok());
  const port::Address from = bound->local();
  {
    auto h = engine_->hold();
    ActiveStart::start(h.token(), handler_,
                       {.from = from, .to = listener_->local(), .timeout = 30s}, bound->release());
  }
  accept();
  EXPECT_EQ(peer_->peer().port(), from.port());
}

TEST_F(ActiveStartTest, WithoutMemoryItComesToNothing) {
  ActiveStart& d = begin(true);
  accept();
  {
    auto h = engine_->hold();
    d.on_no_memory(h.token());  // as the engine says it
  }
  EXPECT_EQ(failed(DialEnd::no_memory), 1U);
  EXPECT_EQ(handler_.told, 1);
  EXPECT_TRUE(hear(kRequest + 1).size() <= kRequest);
  EXPECT_TRUE(ended_);
}

// No second try for nobody.
TEST_F(ActiveStartTest, GivenUpItDoesNotFallBack) {
  ActiveStart& d = begin(true);
  accept();
  ASSERT_EQ(hear(kRequest).size(), kRequest);
  cancel(d);
  peer_.reset();
  for (int i = 0; i < 1000; ++i) engine_->progress();
  pollfd p{.fd = listener_->fd(), .events = POLLIN, .revents = 0};
  EXPECT_EQ(::poll(&p, 1, 100), 0);
  EXPECT_EQ(handler_.told, 0);
}

}  // namespace
}  // namespace weft::cm
