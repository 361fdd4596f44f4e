#include "cm/retrying_start.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <atomic>

#include "port/tcp_listener.h"

namespace weft::cm {
namespace {

using namespace std::chrono_literals;
using engine::Token;

constexpr Gid kHere = Gid::from_ipv4(0x7f000001);

struct Outcome final : RetryingStartHandler {
  void stream_started(Token&, Started&&) override { ++started; }
  void stream_not_started(Token&, ActiveStartFailure&& failure) override {
    kind = failure.kind;
    ++failed;
  }
  void no_memory_to_start(Token&) override { ADD_FAILURE() << "no memory"; }
  std::atomic<int> started{0};  // by whoever holds the engine
  std::atomic<int> failed{0};
  ActiveStartFailure::Kind kind{};
};

class RetryingStartTest : public testing::Test {
 protected:
  void SetUp() override {
    auto e = engine::Engine::create(0);
    ASSERT_TRUE(e.ok());
    engine_ = std::move(*e);
  }
  // A number that nobody else is given, and at which nobody listens yet.
  static port::Fd bound(port::Address& at) {
    port::Fd fd{::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
    const auto any = port::Address::from_gid(kHere, 0);
    EXPECT_EQ(::bind(fd.get(), any.get(), any.length), 0);
    at = port::Address::of_socket(fd.get());
    return fd;
  }
  static ActiveStartPlan plan(const port::Address& to) {
    return {.to = to, .offer = {.extension = true, .ird = 1, .ord = 1}, .timeout = 30s};
  }
  void await(const std::atomic<int>& told) {
    const auto until = std::chrono::steady_clock::now() + 20s;
    while (told == 0 && std::chrono::steady_clock::now() < until) engine_->progress();
    EXPECT_EQ(told, 1);
  }
  uint64_t refusals() const {
    constexpr auto kWhy = static_cast<size_t>(stats::DialEnd::nobody_listens);
    return engine_->counters().dial_failed[kWhy].value();
  }

  std::unique_ptr<engine::Engine> engine_;
};

TEST_F(RetryingStartTest, ARefusalThatStandsIsToldOnce) {
  port::Address at;
  const port::Fd silent = bound(at);
  Outcome outcome;
  RetryingStart start{outcome};
  {
    auto h = engine_->hold();
    start.begin(h.token(), plan(at), {}, true);
    EXPECT_TRUE(start.connecting());
  }
  await(outcome.failed);
  EXPECT_EQ(outcome.kind, ActiveStartFailure::Kind::refused);
  EXPECT_EQ(outcome.started, 0);
  const auto h = engine_->hold();
  EXPECT_FALSE(start.connecting());
}

TEST_F(RetryingStartTest, AFirstRefusalCountsWhereTheProgramGoesOnOtherwise) {
  port::Address at;
  const port::Fd silent = bound(at);
  Outcome outcome;
  RetryingStart start{outcome};
  const uint64_t before = refusals();
  {
    auto h = engine_->hold();
    start.begin(h.token(), plan(at), {}, false);
  }
  await(outcome.failed);
  EXPECT_EQ(outcome.kind, ActiveStartFailure::Kind::refused);
  EXPECT_EQ(refusals(), before + 1) << "nobody was asked a second time";
}

// The first try is refused before the listener listens. A machine that is so busy that the refusal
// has stood by then begins again.
TEST_F(RetryingStartTest, AServerThatIsAboutToListenIsFound) {
  for (int i = 0; i < 50; ++i) {
    port::Address at;
    const port::Fd server = bound(at);
    Outcome outcome;
    RetryingStart start{outcome};
    const uint64_t before = refusals();
    {
      auto h = engine_->hold();
      start.begin(h.token(), plan(at), {}, true);
      ASSERT_EQ(::listen(server.get(), 1), 0);
    }
    pollfd p{.fd = server.get(), .events = POLLIN, .revents = 0};
    while (outcome.failed == 0 && ::poll(&p, 1, 0) == 0) engine_->progress();
    auto h = engine_->hold();
    start.cancel(h.token());
    if (outcome.failed != 0) continue;
    EXPECT_GE(refusals(), before + 1) << "it was refused first";
    return;
  }
  FAIL() << "nobody came";
}

// Only who is not there may come yet.
TEST_F(RetryingStartTest, WhoAnswersOtherwiseIsNotAskedAgain) {
  auto listener = port::TcpListener::listen(port::Address::from_gid(kHere, 0), 4);
  ASSERT_TRUE(listener.ok());
  Outcome outcome;
  RetryingStart start{outcome};
  {
    auto h = engine_->hold();
    start.begin(h.token(), plan(listener->local()), {}, true);
  }
  pollfd p{.fd = listener->fd(), .events = POLLIN, .revents = 0};
  ASSERT_EQ(::poll(&p, 1, 20'000), 1);
  auto tcp = listener->accept();
  ASSERT_TRUE(tcp);
  const std::array<std::byte, 64> rubbish{};
  const IoVec piece{const_cast<std::byte*>(rubbish.data()), rubbish.size()};
  ASSERT_EQ(tcp->send({&piece, 1}).bytes, rubbish.size());
  await(outcome.failed);
  EXPECT_EQ(outcome.kind, ActiveStartFailure::Kind::protocol);
  EXPECT_EQ(::poll(&p, 1, 0), 0) << "nobody came a second time";
}

}  // namespace
}  // namespace weft::cm
