#include "cm/passive_start.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>

#include "port/tcp_listener.h"

namespace weft::cm {
namespace {

using namespace std::chrono_literals;
using engine::Token;

// Lets the request wait, and says no when its time is over.
class Patient final : public PassiveStartHandler {
 public:
  void request_came(Token& token, PassiveStart& start, const mpa::Responder::Request&) override {
    ++came;
    start.wait_until(token, token.now() + 1ms);
  }
  void start_gone(Token&, PassiveStart&) override { ++gone; }
  void start_overdue(Token& token, PassiveStart& start) override {
    ++overdue;
    start.reject(token, {});
  }
  int came = 0;
  int gone = 0;
  int overdue = 0;
};

// Lets it wait for the test's word.
class ParkedRequest final : public PassiveStartHandler {
 public:
  void request_came(Token&, PassiveStart& came, const mpa::Responder::Request&) override {
    start = &came;
  }
  void start_gone(Token&, PassiveStart&) override { start = nullptr; }
  std::atomic<PassiveStart*> start{nullptr};  // the engine's own thread may be the one to set it
};

// spec/addressing 5.2: a parked Request waits for a bounded time, and then has an answer.
TEST(PassiveStart, AParkedRequestIsAnsweredWhenItsTimeIsOver) {
  auto engine = engine::Engine::create(0);
  ASSERT_TRUE(engine.ok());
  const auto listener =
      port::TcpListener::listen(port::Address::from_gid(Gid::from_ipv4(0x7f000001), 0), 1);
  ASSERT_TRUE(listener.ok());
  auto peer = port::TcpStream::connect({}, listener->local());
  ASSERT_TRUE(peer.ok());
  pollfd p{.fd = listener->fd(), .events = POLLIN, .revents = 0};
  ASSERT_EQ(::poll(&p, 1, 10'000), 1);
  auto accepted = listener->accept();
  ASSERT_TRUE(accepted);
  Patient handler;
  {
    auto h = (*engine)->hold();
    PassiveStart::start(h.token(), handler, std::move(*accepted));
  }
  char request[21] = "MPA ID Req Frame\x40\x01\x00\x00";
  const IoVec whole{request, 20};
  ASSERT_EQ(peer->send({&whole, 1}).bytes, 20U);
  char reply[20] = {};
  const IoVec room{reply, sizeof reply};
  for (;;) {
    (*engine)->progress();
    const auto t = peer->receive({&room, 1});
    if (t.would_block) continue;
    EXPECT_EQ(t.bytes, 20U);
    break;
  }
  auto h = (*engine)->hold();
  EXPECT_EQ(handler.came, 1);
  EXPECT_EQ(handler.overdue, 1);
  EXPECT_EQ(handler.gone, 0);
  EXPECT_NE(reply[16] & 0x20, 0) << "R: rejected (spec/mpa 2.1)";
}

// The connection broke while the program made up its mind.
TEST(PassiveStart, AReplyThatCannotBeSentIsCounted) {
  auto engine = engine::Engine::create(0);
  ASSERT_TRUE(engine.ok());
  const auto listener =
      port::TcpListener::listen(port::Address::from_gid(Gid::from_ipv4(0x7f000001), 0), 2);
  ASSERT_TRUE(listener.ok());
  ParkedRequest handler;
  const auto call = [&] {
    auto peer = port::TcpStream::connect({}, listener->local());
    EXPECT_TRUE(peer.ok());
    pollfd p{.fd = listener->fd(), .events = POLLIN, .revents = 0};
    EXPECT_EQ(::poll(&p, 1, 10'000), 1);
    auto h = (*engine)->hold();
    PassiveStart::start(h.token(), handler, std::move(*listener->accept()));
    char request[21] = "MPA ID Req Frame\x40\x01\x00\x00";
    const IoVec whole{request, 20};
    EXPECT_EQ(peer->send({&whole, 1}).bytes, 20U);
    return std::move(*peer);
  };
  const auto unsent = [&] {
    const auto i = static_cast<size_t>(stats::StartRefusal::reply_unsent);
    return (*engine)->counters().start_refused[i].value();
  };
  for (const bool yes : {true, false}) {
    handler.start = nullptr;
    const port::TcpStream peer = call();
    const auto until = std::chrono::steady_clock::now() + 10s;
    while (handler.start == nullptr && std::chrono::steady_clock::now() < until)
      (*engine)->progress();
    ASSERT_NE(handler.start, nullptr);
    auto h = (*engine)->hold();
    PassiveStart& start = *handler.start;
    ::shutdown(start.tcp().fd(), SHUT_WR);
    if (yes) {
      EXPECT_FALSE(start.accept(h.token(), {}, {}));
      EXPECT_EQ(unsent(), 1U);
    } else {
      start.reject(h.token(), {});
      EXPECT_EQ(unsent(), 2U);
    }
  }
}

// There is no memory for a Request of which only the first bytes are there.
class NoMemory : public testing::Test {
 protected:
  class Handler final : public PassiveStartHandler {
   public:
    void request_came(Token&, PassiveStart&, const mpa::Responder::Request&) override { ++came; }
    void start_gone(Token&, PassiveStart&) override { ++gone; }
    void count_no_memory(Token&) override { ++counted; }
    int came = 0;
    int gone = 0;
    int counted = 0;
  };
  // What the peer has heard when the connection is closed.
  std::string heard_by_who_said(std::string_view said) {
    auto engine = engine::Engine::create(0);
    EXPECT_TRUE(engine.ok());
    const auto listener =
        port::TcpListener::listen(port::Address::from_gid(Gid::from_ipv4(0x7f000001), 0), 1);
    EXPECT_TRUE(listener.ok());
    auto peer = port::TcpStream::connect({}, listener->local());
    EXPECT_TRUE(peer.ok());
    pollfd p{.fd = listener->fd(), .events = POLLIN, .revents = 0};
    EXPECT_EQ(::poll(&p, 1, 10'000), 1);
    auto accepted = listener->accept();
    std::string bytes{said};
    const IoVec whole{bytes.data(), bytes.size()};
    EXPECT_EQ(peer->send({&whole, 1}).bytes, said.size());
    pollfd in{.fd = accepted->fd(), .events = POLLIN, .revents = 0};
    EXPECT_EQ(::poll(&in, 1, 10'000), 1);
    {
      auto h = (*engine)->hold();
      PassiveStart& start = PassiveStart::start(h.token(), handler, std::move(*accepted));
      start.on_ready(h.token(), true, false);
      start.on_no_memory(h.token());  // as the engine says it
    }
    const auto i = static_cast<size_t>(stats::StartRefusal::no_memory);
    closed_without_reply = (*engine)->counters().start_refused[i].value();
    std::string heard;
    for (const auto until = std::chrono::steady_clock::now() + 10s;
         std::chrono::steady_clock::now() < until;) {
      (*engine)->progress();
      char room[64];
      const IoVec into{room, sizeof room};
      const auto t = peer->receive({&into, 1});
      if (t.would_block) continue;
      if (t.end || t.error != 0) return heard;
      heard.append(room, t.bytes);
    }
    ADD_FAILURE() << "not closed";
    return heard;
  }
  Handler handler;
  uint64_t closed_without_reply = 0;
};

// A Reply has the revision and the S of its Request.
TEST_F(NoMemory, WhoHasNotSaidHowToAnswerIsNotAnswered) {
  EXPECT_EQ(heard_by_who_said("MPA ID Req Frame\x50"), "");
  EXPECT_EQ(closed_without_reply, 1U);
  EXPECT_EQ(handler.counted, 0);
  EXPECT_EQ(handler.gone, 1);
}

TEST_F(NoMemory, WhoHasSaidHowToAnswerIsRejected) {
  using namespace std::string_view_literals;
  // Revision 2 with an enhanced block; 8 bytes are announced, and 1 is there.
  const std::string reply = heard_by_who_said("MPA ID Req Frame\x50\x02\x00\x08\x00"sv);
  ASSERT_EQ(reply.size(), 24U);
  EXPECT_EQ(reply.substr(0, 16), "MPA ID Rep Frame");
  EXPECT_EQ(reply[16] & 0x30, 0x30) << "R: rejected, S: enhanced (spec/mpa 2.1)";
  EXPECT_EQ(reply[17], 2) << "revision";
  EXPECT_EQ(closed_without_reply, 0U);
  EXPECT_EQ(handler.counted, 1);
  EXPECT_EQ(handler.gone, 1);
  EXPECT_EQ(handler.came, 0);
}

}  // namespace
}  // namespace weft::cm
