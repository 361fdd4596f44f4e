// Real connections on the loopback interface, with faults on purpose between them and the kernel.

#include "port/faulty_stream.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <memory>

#include "port/faults.h"
#include "port/tcp_listener.h"
#include "tests/support/hex.h"

namespace weft::port {
namespace {

using namespace std::chrono_literals;
using stats::InjectedFault;
using test::Buffer;
using test::pattern;

FaultSpec spec(const char* text) {
  return *FaultSpec::parse(text);
}

bool ready(int fd, short events) {
  pollfd p{.fd = fd, .events = events, .revents = 0};
  return ::poll(&p, 1, 10'000) == 1;
}

class FaultyTcp : public ::testing::Test {
 protected:
  FaultyTcp() {
    faults::count_in(counters_.get());
    auto l = TcpListener::listen(Address::from_gid(Gid::from_ipv4(INADDR_LOOPBACK), 0), 4);
    auto c = TcpStream::connect({}, l->local());
    EXPECT_TRUE(c.ok());
    a_ = std::move(*c);
    EXPECT_TRUE(ready(l->fd(), POLLIN));
    b_ = std::move(*l->accept());
    EXPECT_TRUE(ready(a_.fd(), POLLOUT));
  }
  ~FaultyTcp() override { faults::count_in(nullptr); }

  uint64_t count(InjectedFault what) const {
    return counters_->fault_injected[static_cast<size_t>(what)].value();
  }
  // The sends of a start-up, which are left alone.
  void start_up() {
    Buffer frame = pattern(532, 1);
    for (int i = 0; i < 2; ++i) {
      const IoVec v{frame.data(), frame.size()};
      EXPECT_EQ(a_.send({&v, 1}).bytes, frame.size());
    }
    Buffer got(1064);
    move(b_, got, 0);
  }
  // Once: how far it comes with `data`, of which `done` bytes are through.
  static TcpStream::Transfer step(const TcpStream& s, bool out, Buffer& data, size_t done) {
    // In two pieces, where there is enough.
    const size_t half = (data.size() - done) / 2;
    const IoVec pieces[] = {{data.data() + done, half},
                            {data.data() + done + half, data.size() - done - half}};
    return out ? s.send(pieces) : s.receive(pieces);
  }
  static void move(const TcpStream& s, Buffer& into, size_t done) {
    const Time end = faults::now() + 20s;
    while (done < into.size() && faults::now() < end) done += step(s, false, into, done).bytes;
    EXPECT_EQ(done, into.size());
  }
  // Through the connection and back; the number of transfers that moved something.
  size_t through(size_t bytes) {
    Buffer data = pattern(bytes, 3);
    Buffer got(bytes);
    size_t calls = 0;
    const Time end = faults::now() + 60s;
    for (size_t sent = 0, have = 0; have < bytes && faults::now() < end;) {
      if (sent < bytes) {
        const auto t = step(a_, true, data, sent);
        EXPECT_EQ(t.error, 0);
        sent += t.bytes;
        calls += t.bytes > 0 ? 1 : 0;
      }
      const auto t = step(b_, false, got, have);
      EXPECT_EQ(t.error, 0);
      EXPECT_FALSE(t.end);
      have += t.bytes;
      calls += t.bytes > 0 ? 1 : 0;
    }
    EXPECT_TRUE(got == data);
    return calls;
  }

  std::unique_ptr<stats::DeviceCounters> counters_ = std::make_unique<stats::DeviceCounters>();
  TcpStream a_;
  TcpStream b_;
};

// With every call cut, and no part larger than 64 KiB.
TEST_F(FaultyTcp, PartsOfAnySizeAddUp) {
  constexpr size_t kBytes = 3'000'000;
  constexpr size_t kParts = kBytes / 65'536;
  a_.inject(spec("split:1,seed:3"));
  b_.inject(spec("split:1,seed:4"));
  start_up();
  const uint64_t before = count(InjectedFault::stream_split);
  EXPECT_GT(through(kBytes), 2 * kParts);
  EXPECT_GT(count(InjectedFault::stream_split), before + 2 * kParts);
}

TEST_F(FaultyTcp, StartUpFramesGoOutWhole) {
  a_.inject(spec("split:1,delay:10ms,way:out"));
  start_up();
  EXPECT_EQ(count(InjectedFault::stream_split), 0U);
  EXPECT_EQ(count(InjectedFault::stream_delayed), 0U);
}

TEST_F(FaultyTcp, OftenIsNotAlways) {
  a_.inject(spec("split:0.5,seed:5"));
  start_up();
  const uint64_t before = count(InjectedFault::stream_split);
  Buffer one = pattern(100, 7);
  size_t whole = 0;
  for (int i = 0; i < 200; ++i) whole += step(a_, true, one, 0).bytes == one.size() ? 1 : 0;
  EXPECT_GT(whole, 50U);
  EXPECT_EQ(whole, 200 - (count(InjectedFault::stream_split) - before));
}

TEST_F(FaultyTcp, WhatComesAfterAPauseWaits) {
  b_.inject(spec("delay:20ms,way:in"));
  Buffer one = pattern(100, 7);
  for (int i = 0; i < 3; ++i) {
    Buffer got(100);
    EXPECT_TRUE(step(b_, false, got, 0).would_block) << "nothing there yet";
    const Time before = faults::now();
    ASSERT_EQ(step(a_, true, one, 0).bytes, one.size());
    ASSERT_TRUE(ready(b_.fd(), POLLIN));
    EXPECT_TRUE(step(b_, false, got, 0).would_block);
    move(b_, got, 0);
    EXPECT_GE(faults::now(), before + 20ms);
    EXPECT_TRUE(got == one);
  }
  EXPECT_EQ(count(InjectedFault::stream_delayed), 3U);
}

TEST_F(FaultyTcp, WhatGoesAfterAPauseWaits) {
  a_.inject(spec("delay:20ms,way:out"));
  start_up();
  Buffer one = pattern(100, 7);
  ::poll(nullptr, 0, 2);
  const Time before = faults::now();
  size_t sent = 0;
  EXPECT_TRUE(step(a_, true, one, 0).would_block);
  while (sent == 0 && faults::now() < before + 10s) sent = step(a_, true, one, 0).bytes;
  EXPECT_EQ(sent, one.size());
  EXPECT_GE(faults::now(), before + 20ms);
  EXPECT_EQ(count(InjectedFault::stream_delayed), 1U);
}

TEST_F(FaultyTcp, EverythingAtOnce) {
  a_.inject(spec("split:0.5,delay:100us,jitter:300us,seed:8"));
  b_.inject(spec("split:0.5,delay:100us,jitter:300us,seed:9"));
  start_up();
  through(1'000'000);
  EXPECT_GT(count(InjectedFault::stream_delayed), 0U);
}

// A FIN has no bytes that could wait, and whoever waits for it is told.
TEST_F(FaultyTcp, TheEndIsSeen) {
  b_.inject(spec("delay:10s,split:1"));
  a_.shut_write();
  ASSERT_TRUE(ready(b_.fd(), POLLIN));
  Buffer got(10);
  EXPECT_TRUE(step(b_, false, got, 0).end);
}

TEST_F(FaultyTcp, FaultsOfDatagramsAreNone) {
  a_.inject(spec("loss:1,corrupt:1,duplicate:1,reorder:1"));
  b_.inject(spec("loss:1,corrupt:1,duplicate:1,reorder:1"));
  through(100'000);
  EXPECT_EQ(count(InjectedFault::stream_split), 0U);
}

}  // namespace
}  // namespace weft::port
