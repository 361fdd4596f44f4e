#include "cm/acceptor.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <new>
#include <vector>

#include "tests/unit/cm/memory.h"

namespace weft::cm {
namespace {

using namespace std::chrono_literals;
using engine::Token;
using stats::AcceptPause;
using stats::CmRejection;
using stats::StartRefusal;

class Program final : public PassiveStartHandler {
 public:
  void request_came(Token& token, PassiveStart& start, const mpa::Responder::Request&) override {
    ++came;
    if (poor) throw std::bad_alloc{};
    start.reject(token, {});
  }
  void start_gone(Token&, PassiveStart&) override { ++gone; }
  void count_no_memory(Token& token) override {
    ++counted;
    PassiveStartHandler::count_no_memory(token);
  }
  // Looked at beside the engine's own thread.
  std::atomic<int> came{0};
  std::atomic<int> gone{0};
  std::atomic<int> counted{0};
  std::atomic<bool> poor{false};
};

// A listener on the engine's side, callers on the other.
class AcceptorTest : public testing::Test {
 protected:
  void SetUp() override {
    auto e = engine::Engine::create(0);
    ASSERT_TRUE(e.ok());
    engine_ = std::move(*e);
    auto l = port::TcpListener::listen(port::Address::from_gid(Gid::from_ipv4(0x7f000001), 0), 512);
    ASSERT_TRUE(l.ok());
    listener_.emplace(std::move(*l));
    auto h = engine_->hold();
    acceptor_ = &Acceptor::start(h.token(), program_, *listener_);
  }
  port::TcpStream call(const port::Address& from = {}) {
    auto tcp = port::TcpStream::connect(from, listener_->local());
    EXPECT_TRUE(tcp.ok());
    pollfd p{.fd = tcp->fd(), .events = POLLOUT, .revents = 0};
    EXPECT_EQ(::poll(&p, 1, 10'000), 1);
    return std::move(*tcp);
  }
  static void ask(port::TcpStream& caller) {
    char request[21] = "MPA ID Req Frame\x40\x01\x00\x00";
    const IoVec whole{request, 20};
    EXPECT_EQ(caller.send({&whole, 1}).bytes, 20U);
  }
  template <class Condition>
  bool soon(Condition&& holds) {
    const auto until = std::chrono::steady_clock::now() + 10s;
    while (!holds()) {
      if (std::chrono::steady_clock::now() > until) return false;
      engine_->progress();
    }
    return true;
  }
  void expect_rejection(port::TcpStream& caller) {
    char reply[21] = {};
    const IoVec room{reply, 20};
    size_t got = 0;
    EXPECT_TRUE(soon([&] {
      const auto t = caller.receive({&room, 1});
      got = t.bytes;
      return !t.would_block;
    }));
    ASSERT_EQ(got, 20U) << "closed without a Reply";
    EXPECT_EQ(std::string_view(reply, 16), "MPA ID Rep Frame");
    EXPECT_NE(reply[16] & 0x20, 0) << "R: rejected (spec/mpa 2.1)";
  }
  uint64_t accepted() const { return engine_->counters().connections_accepted.value(); }
  uint64_t paused(AcceptPause why) const {
    return engine_->counters().accept_paused[static_cast<size_t>(why)].value();
  }

  uint64_t start_refused(StartRefusal why) const {
    return engine_->counters().start_refused[static_cast<size_t>(why)].value();
  }

  Program program_;
  std::unique_ptr<engine::Engine> engine_;
  std::optional<port::TcpListener> listener_;
  Acceptor* acceptor_ = nullptr;
};

// spec/threats 3: the rest waits in the kernel's queue, and gets in when one has left.
TEST_F(AcceptorTest, TakesNoMoreThan256ThatSayNothing) {
  constexpr uint64_t kMost = Acceptor::kMostHalfOpen;
  std::vector<port::TcpStream> callers;
  const Time begun = engine::Engine::clock();
  for (uint64_t i = 0; i < kMost; ++i) callers.push_back(call());
  port::TcpStream next = call();
  ask(next);
  ASSERT_TRUE(soon([&] { return paused(AcceptPause::half_open) > 0; }));
  for (int i = 0; i < 1000; ++i) engine_->progress();
  const uint64_t got_in = accepted();
  const uint64_t pauses = paused(AcceptPause::half_open);
  const int came = program_.came;
  // After a second one of them makes room.
  if (engine::Engine::clock() - begun < 900ms) {
    EXPECT_EQ(got_in, kMost);
    EXPECT_EQ(pauses, 1U) << "once, not at every turn";
    EXPECT_EQ(came, 0);
  }
  callers.back().close();
  EXPECT_TRUE(soon([&] { return program_.came == 1; }));
  EXPECT_EQ(accepted(), kMost + 1);
}

// RFC 5042 6.4.1: whoever takes all places gives one up when another host calls, and not those of
// others.
TEST_F(AcceptorTest, TheHostWithTheMostSilentCallersMakesRoom) {
  constexpr size_t kOthers = 6;
  const auto from = [](uint32_t host) {
    return port::Address::from_gid(Gid::from_ipv4(0x7f000000 + host), 0);
  };
  const auto closed = [](const port::TcpStream& caller) {
    char byte;
    const IoVec room{&byte, 1};
    return !caller.receive({&room, 1}).would_block;
  };
  const auto begun = std::chrono::steady_clock::now();
  std::vector<port::TcpStream> others;
  for (size_t i = 0; i < kOthers; ++i) others.push_back(call(from(2)));
  std::vector<port::TcpStream> crowd;
  for (size_t i = kOthers; i < Acceptor::kMostHalfOpen; ++i) crowd.push_back(call(from(3)));
  ASSERT_TRUE(soon([&] { return accepted() == Acceptor::kMostHalfOpen; }));
  std::vector<port::TcpStream> late;
  for (int i = 1; i <= 3; ++i) {
    late.push_back(call(from(4)));
    ask(late.back());
  }
  ASSERT_TRUE(soon([&] { return program_.came == 3; }));
  for (port::TcpStream& caller : late) expect_rejection(caller);
  const auto gave_up = std::count_if(crowd.begin(), crowd.end(), closed);
  EXPECT_GE(gave_up, 1);
  EXPECT_TRUE(closed(crowd.front())) << "the oldest";
  const auto gone = std::count_if(others.begin(), others.end(), closed);
  // After five seconds all of them go, of whatever host.
  if (std::chrono::steady_clock::now() - begun > 4500ms) {
    GTEST_SKIP() << "this machine took as long for it as silence is borne";
  }
  EXPECT_LT(gave_up, 10);
  EXPECT_EQ(gone, 0);
  EXPECT_EQ(start_refused(StartRefusal::request_late), static_cast<uint64_t>(gave_up));
}

TEST_F(AcceptorTest, WaitsForADescriptor) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  port::TcpStream caller;
  const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
  {
    auto h = engine_->hold();  // the engine's own thread does not let it in before that
    caller = call();
    ask(caller);
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  }
  const bool said = soon([&] { return paused(AcceptPause::no_descriptor) > 0; });
  const uint64_t got_in = accepted();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(said);
  EXPECT_EQ(got_in, 0U);
  EXPECT_TRUE(soon([&] { return program_.came == 1; }));
}

TEST_F(AcceptorTest, RestsWhereThereIsNoMemoryAndGoesOn) {
  {
    auto h = engine_->hold();
    acceptor_->on_no_memory(h.token());  // as the engine says it
  }
  EXPECT_EQ(paused(AcceptPause::no_memory), 1U);
  port::TcpStream caller = call();
  ask(caller);
  EXPECT_TRUE(soon([&] { return program_.came == 1; }));
}

// spec/mpa 2.3.4: whoever hears no Reply connects again without weft's extension, and there a
// request is complete before it has arrived. So want of memory never closes a connection.
TEST_F(AcceptorTest, AConnectionForWhichThereIsNoMemoryWaits) {
  port::TcpStream caller;
  {
    auto h = engine_->hold();
    caller = call();
    ask(caller);
    most_memory = 0;
  }
  const bool said = soon([&] { return paused(AcceptPause::no_memory) > 0; });
  most_memory = SIZE_MAX;
  EXPECT_TRUE(said);
  EXPECT_TRUE(soon([&] { return program_.came == 1; }));
  EXPECT_EQ(accepted(), 1U) << "the one that waited";
  expect_rejection(caller);
}

TEST_F(AcceptorTest, ARequestForWhichThereIsNoMemoryIsRejected) {
  program_.poor = true;
  port::TcpStream caller = call();
  ask(caller);
  ASSERT_TRUE(soon([&] { return program_.gone == 1; }));
  const stats::EngineCounters& counted = engine_->counters();
  EXPECT_EQ(counted.cm_rejected[static_cast<size_t>(CmRejection::no_memory)].value(), 1U);
  EXPECT_EQ(counted.start_refused[static_cast<size_t>(StartRefusal::no_memory)].value(), 0U)
      << "that is for what gets no Reply";
  expect_rejection(caller);
}

// The fixed part of the Request is there, and no memory for its private data. It is the program's
// Request as any other, though it has not heard of it.
TEST_F(AcceptorTest, ARequestForWhoseRestThereIsNoMemoryIsRejected) {
  port::TcpStream caller = call();
  ASSERT_TRUE(soon([&] { return accepted() == 1; }));
  {
    auto h = engine_->hold();
    char request[25] = "MPA ID Req Frame\x40\x01\x00\x04rest";
    const IoVec whole{request, 24};
    EXPECT_EQ(caller.send({&whole, 1}).bytes, 24U);
    most_memory = 20;  // the fixed part, and the Reply
  }
  const stats::Cell& rejected =
      engine_->counters().cm_rejected[static_cast<size_t>(CmRejection::no_memory)];
  const bool counted = soon([&] { return rejected.value() > 0; });
  most_memory = SIZE_MAX;
  EXPECT_TRUE(counted);
  expect_rejection(caller);
  EXPECT_EQ(program_.came, 0);
  EXPECT_EQ(program_.counted, 1) << "it is for the handler to say where";
}

}  // namespace
}  // namespace weft::cm

// All of this program's: those of other threads fail, too.
void* operator new(size_t size) {
  if (size > weft::cm::most_memory) throw std::bad_alloc{};
  if (void* p = std::malloc(size)) return p;
  throw std::bad_alloc{};
}
void* operator new(size_t size, const std::nothrow_t&) noexcept {
  return size > weft::cm::most_memory ? nullptr : std::malloc(size);
}
void operator delete(void* p) noexcept {
  std::free(p);
}
void operator delete(void* p, size_t) noexcept {
  std::free(p);
}
