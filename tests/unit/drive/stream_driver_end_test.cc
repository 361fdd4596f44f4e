// How connections that break are told from those that were ended with a reason.

#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>

#include "drive/stream_driver.h"
#include "engine/engine.h"
#include "port/tcp_listener.h"
#include "tests/support/frames.h"
#include "tests/support/host.h"

namespace weft::drive {
namespace {

using namespace std::chrono_literals;
using engine::Engine;
using engine::Hold;

using test::Buffer;
using work::Operation;
using work::Status;
using work::StreamEnd;

struct Owner final : StreamOwner {
  void visited(Token&) override {
    if (poor > 0) {
      --poor;
      throw std::bad_alloc{};
    }
  }
  int poor = 0;  // as often there is no memory for what comes of a visit
  void driver_gone(Token&) override { gone = true; }
  std::atomic<bool> gone{false};  // looked at beside the engine's own thread
};

void await(int fd, short events) {
  pollfd p{.fd = fd, .events = events, .revents = 0};
  ASSERT_EQ(::poll(&p, 1, 20'000), 1);
}

// A stream on a connection of loopback, whose other end is the test.
struct StreamDriverEnd : testing::Test {
  void SetUp() override {
    auto listener =
        port::TcpListener::listen(port::Address::from_gid(Gid::from_ipv4(INADDR_LOOPBACK), 0), 4);
    ASSERT_TRUE(listener.ok());
    auto connected = port::TcpStream::connect({}, listener->local());
    ASSERT_TRUE(connected.ok());
    ours = std::move(*connected);
    await(listener->fd(), POLLIN);
    auto accepted = listener->accept();
    ASSERT_TRUE(accepted);
    theirs = std::move(*accepted);
  }
  StreamDriver& start(Hold& h) {
    const int fd = ours.fd();
    auto owned = std::make_unique<StreamDriver>(
        owner, std::make_unique<port::TcpStream>(std::move(ours)), host,
        rdmap::StreamConfig{.mpa = {.extension = false, .ird = 4, .ord = 4}, .initiator = true}, 1,
        h.token().now());
    StreamDriver& driver = *owned;
    engine->add(h.token(), std::move(owned), fd, true, false);
    driver.start(h.token(), {});
    return driver;
  }
  void say_terminate() {
    const Buffer said =
        test::make_fpdu(test::terminate({.error = wire::term::kProtectionInvalidStag}));
    const IoVec piece{const_cast<std::byte*>(said.data()), said.size()};
    ASSERT_EQ(theirs.send({&piece, 1}).bytes, said.size());
  }
  void expect_terminated() {
    ASSERT_TRUE(host.end);
    EXPECT_EQ(host.end->kind, StreamEnd::Kind::terminated);
    EXPECT_EQ(host.end->error, wire::term::kProtectionInvalidStag);
  }

  Owner owner;
  test::Host host;
  port::TcpStream ours;  // until start()
  port::TcpStream theirs;
  std::unique_ptr<Engine> engine = std::move(*Engine::create(0));
};

// siw's Terminate is followed by a reset when more of ours arrives behind the fault, a kick for
// one. The next send fails, and what came before the reset still has to be heard (spec/errors 4).
TEST_F(StreamDriverEnd, ATerminateInFrontOfAResetIsHeard) {
  Buffer sink(10);
  {
    Hold h = engine->hold();  // so that nobody reads meanwhile
    const int fd = ours.fd();
    StreamDriver& driver = start(h);
    const auto post_read = [&] {
      host.post({.operation = Operation::read, .signaled = true, .remote_stag = Stag{0xbad00}},
                {test::segment(host, sink)});
      driver.settle(h.token());
    };
    post_read();
    await(theirs.fd(), POLLIN);
    say_terminate();
    theirs.reset();
    await(fd, POLLERR);
    post_read();
  }
  expect_terminated();
  EXPECT_EQ(host.send_queue().at(0).status, Status::remote_access);
}

// The owner is called once more, until it could deal with what the stream has said.
TEST_F(StreamDriverEnd, WhoHasNoMemoryForItIsVisitedAgain) {
  {
    Hold h = engine->hold();
    start(h);
    owner.poor = 3;
    say_terminate();
  }
  const auto until = std::chrono::steady_clock::now() + 20s;
  while (!owner.gone && std::chrono::steady_clock::now() < until) engine->progress();
  ASSERT_TRUE(owner.gone);
  EXPECT_EQ(owner.poor, 0);
  expect_terminated();
}

}  // namespace
}  // namespace weft::drive
