// A real socket with little room, and a clock of the test's own.

#include "drive/overrun_count.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cerrno>
#include <memory>

#include "port/udp_socket.h"
#include "tests/support/hex.h"

namespace weft::drive {
namespace {

using namespace std::chrono_literals;

struct OverrunCountTest : ::testing::Test {
  OverrunCountTest() {
    port::Fd fd{::socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
    const auto at = port::Address::from_gid(Gid::from_ipv4(INADDR_LOOPBACK), 0);
    EXPECT_EQ(::bind(fd.get(), at.get(), at.length), 0);
    socket = port::UdpSocket{std::move(fd), 4096};
    const port::Address to = socket.local();
    EXPECT_EQ(::connect(sender.get(), to.get(), to.length), 0);
  }

  // Sends until the kernel has dropped more than before; nobody reads.
  void overrun() {
    const uint32_t before = socket.overruns();
    const auto data = test::pattern(1000, 3);
    while (socket.overruns() == before) {
      ASSERT_EQ(::send(sender.get(), data.data(), data.size(), 0), ssize_t{1000}) << errno;
    }
  }
  void poll_if_due() { count.poll_if_due(socket, now, *counters); }
  uint64_t counted() const { return counters->socket_overruns.value(); }

  port::Fd sender{::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
  port::UdpSocket socket;
  OverrunCount count;
  std::unique_ptr<stats::EngineCounters> counters = std::make_unique<stats::EngineCounters>();
  Time now = Time::from_ns(1'000'000'000);
};

TEST_F(OverrunCountTest, NobodyAsksBeforeSomethingCame) {
  overrun();
  EXPECT_TRUE(count.due().is_never());
  now = now + 10s;
  poll_if_due();
  EXPECT_EQ(counted(), 0U);
}

TEST_F(OverrunCountTest, AsksTwentyMillisecondsAfterSomethingCame) {
  overrun();
  count.poll_soon(now);
  EXPECT_EQ(count.due(), now + 20ms);
  now = now + 19ms;
  poll_if_due();
  EXPECT_EQ(counted(), 0U);
  // What comes meanwhile puts nothing off.
  count.poll_soon(now);
  now = now + 1ms;
  EXPECT_EQ(count.due(), now);
  poll_if_due();
  EXPECT_GT(counted(), 0U);
  EXPECT_EQ(counted(), socket.overruns());
  EXPECT_TRUE(count.due().is_never());
}

// What finds no room is behind something that came, and that is read later: so a look behind each
// thing that came sees it, and nobody asks for ever.
TEST_F(OverrunCountTest, AsksOnceMoreBehindTheLastThatCame) {
  count.poll_soon(now);
  now = now + 20ms;
  poll_if_due();
  EXPECT_EQ(counted(), 0U);
  overrun();
  now = now + 1s;
  poll_if_due();
  EXPECT_EQ(counted(), 0U) << "nothing has come since";
  count.poll_soon(now);
  now = count.due();
  poll_if_due();
  EXPECT_EQ(counted(), socket.overruns());
  EXPECT_TRUE(count.due().is_never());
}

TEST_F(OverrunCountTest, CountsEachOnce) {
  for (int look = 0; look < 3; ++look) {
    overrun();
    count.poll_soon(now);
    now = count.due();
    poll_if_due();
    EXPECT_EQ(counted(), socket.overruns());
  }
  // Whoever looks in between leaves nothing to be asked later.
  overrun();
  count.poll_soon(now);
  count.poll(socket, *counters);
  EXPECT_EQ(counted(), socket.overruns());
  EXPECT_TRUE(count.due().is_never());
}

TEST_F(OverrunCountTest, TheKernelsNumberWraps) {
  count.count(0xffff'fff0, *counters);
  EXPECT_EQ(counted(), 0xffff'fff0U);
  count.count(0x10, *counters);
  EXPECT_EQ(counted(), uint64_t{0xffff'fff0} + 0x20);
  count.count(0x10, *counters);
  EXPECT_EQ(counted(), uint64_t{0xffff'fff0} + 0x20);
}

}  // namespace
}  // namespace weft::drive
