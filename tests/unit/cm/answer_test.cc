#include "cm/answer.h"

#include <gtest/gtest.h>
#include <poll.h>

#include "port/tcp_listener.h"

namespace weft::cm {
namespace {

using namespace std::chrono_literals;
using engine::Token;

// Lets the request wait, and says no when its time is over.
class Patient final : public AnswerHandler {
 public:
  void request_came(Token& token, Answer& answer, const mpa::Responder::Request&) override {
    ++came;
    answer.wait_until(token, token.now() + 1ms);
  }
  void answer_gone(Token&, Answer&) override { ++gone; }
  void answer_overdue(Token& token, Answer& answer) override {
    ++overdue;
    answer.reject(token, {});
  }
  int came = 0;
  int gone = 0;
  int overdue = 0;
};

// wire.md 14.1: a parked Request waits for a bounded time, and then has an answer.
TEST(Answer, AParkedRequestIsAnsweredWhenItsTimeIsOver) {
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
    Answer::start(h.token(), handler, std::move(*accepted));
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
  EXPECT_NE(reply[16] & 0x20, 0) << "R: rejected (wire.md 2.1)";
}

}  // namespace
}  // namespace weft::cm
