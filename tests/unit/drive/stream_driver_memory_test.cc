// Streams whose bytes pass through memory that both ends have (spec/same-host), both ends in this
// process.

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>

#include <atomic>
#include <fstream>
#include <functional>
#include <set>
#include <string>
#include <thread>

#include "drive/stream_driver.h"
#include "engine/engine.h"
#include "port/memory_faults.h"
#include "port/tcp_listener.h"
#include "shared/agreement.h"
#include "shared/stream.h"
#include "tests/support/fault_catcher.h"
#include "tests/support/frames.h"
#include "tests/support/host.h"

namespace weft::drive {
namespace {

using namespace std::chrono_literals;
using engine::Engine;
using engine::Hold;
using test::Buffer;
using test::pattern_bytes;
using work::Operation;
using work::Status;

constexpr size_t kReferFrom = 24 * 1024;

struct Owner final : StreamOwner {
  void visited(Token&) override {
    if (on_visit) on_visit();
  }
  void driver_gone(Token&) override { gone = true; }
  bool gone = false;
  std::function<void()> on_visit;
};

// One end: an engine, so that one may stand still while the other goes on.
struct End {
  End() {
    auto e = Engine::create(0);
    EXPECT_TRUE(e.ok());
    engine = std::move(*e);
  }
  ~End() { engine.reset(); }
  End(const End&) = delete;
  End& operator=(const End&) = delete;

  void drive(std::unique_ptr<port::ByteStream> bytes, bool initiator) {
    Hold h = engine->hold();
    const int fd = bytes->fd();
    auto owned = std::make_unique<StreamDriver>(
        owner, std::move(bytes), host,
        rdmap::StreamConfig{.mpa = {.extension = true, .ird = 4, .ord = 4},
                            .initiator = initiator,
                            .counters = {&block, &engine->counter_block()}},
        1, h.token().now());
    driver = owned.get();
    engine->add(h.token(), std::move(owned), fd, true, false);
    driver->start(h.token(), {});
  }
  template <class F>
  void held(F&& f) {
    Hold h = engine->hold();
    f(h.token());
  }
  uint64_t sleeps() const { return engine->counters().wake_ups_sent.value(); }

  std::unique_ptr<Engine> engine;
  stats::QpBlock block;
  test::Host host;
  Owner owner;
  StreamDriver* driver = nullptr;
};

class StreamDriverMemoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    port::catch_memory_faults();
    auto l =
        port::TcpListener::listen(port::Address::from_gid(Gid::from_ipv4(INADDR_LOOPBACK), 0), 4);
    ASSERT_TRUE(l.ok());
    auto c = port::TcpStream::connect({}, l->local());
    ASSERT_TRUE(c.ok());
    pollfd p{.fd = l->fd(), .events = POLLIN, .revents = 0};
    ASSERT_EQ(::poll(&p, 1, 20'000), 1);
    auto accepted = l->accept();
    ASSERT_TRUE(accepted);
    active = std::move(*c);
    passive = std::move(*accepted);
    offered = shared::offer(passive, counters);
    ASSERT_TRUE(offered);
  }
  void start_responder() {
    Bytes none;
    b.drive(std::make_unique<shared::Stream>(std::move(passive), std::move(offered->segment),
                                             shared::Stream::Role::responder, kReferFrom, none,
                                             b.engine->counters()),
            false);
  }
  void start_initiator() {
    auto segment = shared::take(offered->offer, active, counters);
    ASSERT_TRUE(segment);
    Bytes none;
    a.drive(std::make_unique<shared::Stream>(std::move(active), std::move(*segment),
                                             shared::Stream::Role::initiator, kReferFrom, none,
                                             a.engine->counters()),
            true);
  }
  void connect() {
    start_responder();
    start_initiator();
  }
  // `polls`: which ends a program polls; the helper threads of the others see to them.
  template <class F>
  bool until(std::initializer_list<End*> polls, F&& done) {
    for (const Time end = Engine::clock() + 20s; Engine::clock() < end;) {
      for (End* e : polls) e->engine->progress();
      if (polls.size() == 0) std::this_thread::sleep_for(100us);
      const Hold h = a.engine->hold();
      const Hold g = b.engine->hold();
      if (done()) return true;
    }
    return false;
  }
  work::SendWqe writing(Buffer& memory) {
    return {.operation = Operation::write,
            .signaled = true,
            .remote_stag = b.host.add_region(memory),
            .remote_to = test::address_of(memory)};
  }
  // Of a region whose memory is not there.
  static work::LocalSegment add_gone(End& of, uint32_t size) {
    // Nothing is ever mapped so low, and no handler of a sanitizer's is shown it (as in
    // stream_driver_test.cc).
    constexpr uintptr_t kGone = 1 << 12;
    const Stag stag{0x777700};
    of.host.regions[stag] = {
        reinterpret_cast<std::byte*>(kGone),  // NOLINT(performance-no-int-to-ptr): gone on purpose
        kGone, size, 15};
    return {.address = kGone, .length = size, .lkey = stag};
  }
  void write(Buffer& from, Buffer& to) {
    work::SendWqe w{};
    b.held([&](Token&) { w = writing(to); });
    a.held([&](Token& t) {
      a.host.post(w, {test::segment(a.host, from)});
      a.driver->settle(t);
    });
  }

  stats::EngineCounters counters;
  port::TcpStream active;
  port::TcpStream passive;
  std::optional<shared::Offered> offered;
  End a;
  End b;
};

// Whoever polls, or nobody.
TEST_F(StreamDriverMemoryTest, AnyNumberOfBytesArrives) {
  connect();
  int expected = 0;
  for (const std::initializer_list<End*> polls :
       {std::initializer_list<End*>{&a, &b}, {&a}, {&b}, {}}) {
    for (const size_t n : {1U, 5000U, 60'000U, 3'000'001U}) {
      Buffer from = pattern_bytes(n, n);
      Buffer to(n);
      write(from, to);
      ++expected;
      ASSERT_TRUE(until(polls, [&] { return a.host.sent.size() == static_cast<size_t>(expected); }))
          << n;
      EXPECT_EQ(a.host.sent.back().status, Status::success);
      EXPECT_TRUE(to == from) << n;
    }
  }
  EXPECT_TRUE(a.block.peer.value().has_value() == false) << "that is the transport's to say";
}

TEST_F(StreamDriverMemoryTest, ReadsAreAnsweredFromWhereTheBytesLie) {
  connect();
  Buffer there = pattern_bytes(2'000'000, 1);
  Buffer back(there.size());
  work::SendWqe read{.operation = Operation::read, .signaled = true};
  b.held([&](Token&) {
    read.remote_stag = b.host.add_region(there);
    read.remote_to = test::address_of(there);
  });
  a.held([&](Token& t) {
    a.host.post(read, {test::segment(a.host, back)});
    a.driver->settle(t);
  });
  ASSERT_TRUE(until({&a, &b}, [&] { return a.host.sent.size() == 1; }));
  EXPECT_TRUE(back == there);
  EXPECT_LT(b.engine->counters().bytes_sent_copied.value(), 10'000U);
}

// Two sides that poll need the kernel for nothing once they have polled for a while.
TEST_F(StreamDriverMemoryTest, WhoPollsIsNotWokenUp) {
  connect();
  Buffer from = pattern_bytes(64, 1);
  Buffer to(64);
  size_t sent = 0;
  const auto round_trip = [&] {
    write(from, to);
    ++sent;
    return until({&a, &b}, [&] { return a.host.sent.size() == sent; });
  };
  // The helper may take over from a test that does not run for long: in the best of many rounds it
  // did not.
  uint64_t fewest = UINT64_MAX;
  for (int round = 0; round < 200 && fewest > 0; ++round) {
    for (int i = 0; i < 100; ++i) {
      a.engine->progress();
      b.engine->progress();
    }
    const uint64_t before = a.sleeps() + b.sleeps();
    ASSERT_TRUE(round_trip());
    fewest = std::min(fewest, a.sleeps() + b.sleeps() - before);
  }
  EXPECT_EQ(fewest, 0U);
}

TEST_F(StreamDriverMemoryTest, AResponderThatWaitsForTheCarrierSendsThen) {
  start_responder();
  Buffer from = pattern_bytes(50'000, 1);
  Buffer to(50'000);
  work::SendWqe w{.operation = Operation::write, .signaled = true};
  a.held([&](Token&) {
    w.remote_stag = a.host.add_region(to);
    w.remote_to = test::address_of(to);
  });
  b.held([&](Token& t) {
    b.host.post(w, {test::segment(b.host, from)});
    b.driver->settle(t);
  });
  start_initiator();
  ASSERT_TRUE(until({&a, &b}, [&] { return b.host.sent.size() == 1; }));
  EXPECT_TRUE(to == from);
}

TEST_F(StreamDriverMemoryTest, AnInitiatorThatDeclinesIsServedByTcp) {
  start_responder();
  shared::decline(active);
  a.drive(std::make_unique<port::TcpStream>(std::move(active)), true);
  Buffer from = pattern_bytes(50'000, 1);
  Buffer to(50'000);
  write(from, to);
  ASSERT_TRUE(until({&a, &b}, [&] { return a.host.sent.size() == 1; }));
  EXPECT_TRUE(to == from);
  EXPECT_EQ(b.engine->counters().streams_same_host.value(), 0U);
}

// The peer cannot pull it, and asks; this side cannot copy it, and knows whose it is.
TEST_F(StreamDriverMemoryTest, MemoryThatIsGoneFailsItsRequest) {
  connect();
  constexpr uint32_t kSize = 64 * 1024;
  Buffer to(kSize);
  work::SendWqe w{};
  b.held([&](Token&) { w = writing(to); });
  a.held([&](Token& t) {
    a.host.post(w, {add_gone(a, kSize)});
    a.driver->settle(t);
  });
  ASSERT_TRUE(until({&a, &b}, [&] { return a.host.end.has_value() && b.host.end.has_value(); }));
  ASSERT_EQ(a.host.sent.size(), 1U);
  EXPECT_EQ(a.host.sent[0].status, Status::local_protection);
}

// Where this process has mapped memory of connections.
std::set<uintptr_t> segments() {
  std::set<uintptr_t> all;
  std::ifstream maps{"/proc/self/maps"};
  for (std::string line; std::getline(maps, line);) {
    if (line.find("memfd:weft-rc") != std::string::npos) all.insert(std::stoull(line, nullptr, 16));
  }
  return all;
}

// The kernel has no page for what is to be written to.
TEST_F(StreamDriverMemoryTest, ARingThatLacksAPageEndsTheConnection) {
  const test::FaultCatcher faults;
  start_responder();
  std::set<uintptr_t> mine = segments();
  ASSERT_EQ(mine.size(), 1U);
  const uintptr_t others = *mine.begin();
  start_initiator();
  ASSERT_TRUE(until({&a, &b}, [&] { return b.engine->counters().streams_same_host.value() == 1; }));
  mine = segments();
  mine.erase(others);
  ASSERT_EQ(mine.size(), 1U) << "two mappings";
  // All but the head of the segment, and the first page of its first ring.
  auto* const pages =
      reinterpret_cast<void*>(*mine.begin() + 8192);  // NOLINT(performance-no-int-to-ptr)
  constexpr size_t kSize = 500 * 1024;
  ASSERT_EQ(::mprotect(pages, kSize, PROT_NONE), 0);
  Buffer from = pattern_bytes(20'000, 1);
  Buffer to(from.size());
  write(from, to);
  EXPECT_TRUE(until({&a, &b}, [&] { return a.host.end.has_value(); }));
  ASSERT_EQ(a.host.sent.size(), 1U);
  EXPECT_NE(a.host.sent[0].status, Status::success);
}

// A stream that ends while it sends flushes its requests at the end of the visit. Their memory is
// the program's again then, although the peer has not pulled all of it.
TEST_F(StreamDriverMemoryTest, WhatIsFlushedMayChange) {
  connect();
  Buffer from = pattern_bytes(200'000, 1);
  const Buffer before = from;
  Buffer in(from.size());
  Buffer to(20'000);
  ASSERT_TRUE(until({&a, &b}, [&] { return b.engine->counters().streams_same_host.value() == 1; }));
  {
    Hold still = b.engine->hold();
    b.host.post_receive(7, {test::segment(b.host, in)});
    work::SendWqe w = writing(to);
    a.held([&](Token& t) {
      a.owner.on_visit = [&] {
        if (!a.host.sent.empty()) std::fill(from.begin(), from.end(), std::byte{0xee});
      };
      a.host.post({.operation = Operation::send, .signaled = true}, {test::segment(a.host, from)});
      a.host.post(w, {add_gone(a, 20'000)});
      a.driver->settle(t);
    });
    for (bool ended = false; !ended;) {
      a.engine->progress();
      a.held([&](Token&) { ended = a.host.end.has_value(); });
    }
    a.held([&](Token&) { a.owner.on_visit = {}; });
    ASSERT_EQ(a.host.sent.size(), 2U);
    EXPECT_EQ(a.host.sent[0].status, Status::flushed);
    EXPECT_EQ(a.host.sent[1].status, Status::local_protection);
  }
  ASSERT_TRUE(until({&b}, [&] { return b.host.end.has_value(); }));
  ASSERT_EQ(b.host.received.size(), 1U);
  EXPECT_TRUE(in == before);
}

// The memory is the program's again, and the peer gets what was there.
TEST_F(StreamDriverMemoryTest, RetiredMemoryMayChange) {
  connect();
  Buffer from = pattern_bytes(200'000, 1);
  const Buffer before = from;
  Buffer to(from.size());
  {
    Hold still = b.engine->hold();
    const work::SendWqe w = writing(to);
    a.held([&](Token& t) {
      a.host.post(w, {test::segment(a.host, from)});
      a.driver->settle(t);
    });
    a.engine->retire_memory();
    std::fill(from.begin(), from.end(), std::byte{0});
  }
  ASSERT_TRUE(until({&a, &b}, [&] { return a.host.sent.size() == 1; }));
  EXPECT_EQ(a.host.sent[0].status, Status::success);
  EXPECT_TRUE(to == before);
}

// A Read was answered, and not pulled yet; then a Send comes that closes the window.
TEST_F(StreamDriverMemoryTest, MemoryOfAWindowThatIsClosedMayChange) {
  connect();
  Buffer lent = pattern_bytes(200'000, 1);
  const Buffer before = lent;
  Buffer back(lent.size());
  Buffer note = pattern_bytes(100, 2);
  Buffer in(note.size());
  work::SendWqe read{.operation = Operation::read, .signaled = true};
  work::SendWqe send{.operation = Operation::send_invalidate, .signaled = true};
  a.held([&](Token&) {
    read.remote_stag = send.remote_stag = a.host.add_region(lent);
    read.remote_to = test::address_of(lent);
    a.host.post_receive(7, {test::segment(a.host, in)});
    a.host.on_invalidate = [&] { a.driver->window_closed(); };
  });
  ASSERT_TRUE(until({&a, &b}, [&] { return b.engine->counters().streams_same_host.value() == 1; }));
  {
    Hold still = b.engine->hold();
    b.host.post(read, {test::segment(b.host, back)});
    b.driver->settle(still.token());
    for (bool answered = false; !answered;) {
      a.engine->progress();
      a.held([&](Token&) { answered = a.block.counters.bytes_sent[2].value() > 0; });
    }
    b.host.post(send, {test::segment(b.host, note)});
    b.driver->settle(still.token());
    for (bool closed = false; !closed;) {
      a.engine->progress();
      a.held([&](Token&) { closed = !a.host.received.empty(); });
    }
    std::fill(lent.begin(), lent.end(), std::byte{0xee});
  }
  ASSERT_TRUE(until({&a, &b}, [&] { return b.host.sent.size() == 2; }));
  EXPECT_EQ(b.host.sent[0].status, Status::success);
  EXPECT_EQ(b.host.sent[1].status, Status::success);
  EXPECT_TRUE(back == before);
  EXPECT_TRUE(in == note);
}

// The memory goes with the process.
TEST_F(StreamDriverMemoryTest, AnExitWaitsForWhatThePeerIsReferredTo) {
  connect();
  Buffer from = pattern_bytes(300'000, 1);
  Buffer in(from.size());
  ASSERT_TRUE(until({&a, &b}, [&] { return b.engine->counters().streams_same_host.value() == 1; }));
  std::atomic<bool> done{false};
  std::thread exiting;
  {
    Hold still = b.engine->hold();
    b.host.post_receive(7, {test::segment(b.host, in)});
    a.held([&](Token& t) {
      a.host.post({.operation = Operation::send, .signaled = true}, {test::segment(a.host, from)});
      a.driver->settle(t);
      a.driver->stream().leave(t.now());
      a.driver->detach();
      a.driver->settle(t);
    });
    exiting = std::thread{[&] {
      a.engine->flush_at_exit();
      done = true;
    }};
    std::this_thread::sleep_for(100ms);
    EXPECT_FALSE(done) << "the peer has pulled nothing";
  }
  EXPECT_TRUE(until({&b}, [&] { return b.host.received.size() == 1; }));
  exiting.join();
  ASSERT_EQ(b.host.received.size(), 1U);
  EXPECT_EQ(b.host.received[0].status, Status::success);
  EXPECT_TRUE(in == from);
}

TEST_F(StreamDriverMemoryTest, WhatIsSaidBeforeTheCloseArrives) {
  connect();
  Buffer from = pattern_bytes(300'000, 1);
  Buffer to(from.size());
  write(from, to);
  a.held([&](Token& t) {
    a.driver->stream().close(t.now());
    a.driver->settle(t);
  });
  ASSERT_TRUE(until({&a, &b}, [&] { return a.owner.gone && b.owner.gone; }));
  ASSERT_EQ(a.host.sent.size(), 1U);
  EXPECT_EQ(a.host.sent[0].status, Status::success);
  EXPECT_TRUE(to == from);
}

}  // namespace
}  // namespace weft::drive
