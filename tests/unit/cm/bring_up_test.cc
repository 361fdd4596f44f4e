// Requests for a queue pair that is not ready for them, over real sockets. What they get when it
// is, or when the Request is wrong, is asked in tests/verbs.

#include "cm/bring_up.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cm/bring_up_block.h"
#include "port/tcp_stream.h"
#include "tests/unit/cm/memory.h"
#include "tests/unit/cm/one_pair.h"

static std::atomic<int64_t> seconds_ahead{0};

// A clock that can be put forward. For good, and the kernel's timers do not know: a process that
// does so has to end soon.
extern "C" int clock_gettime(clockid_t clock, timespec* now) noexcept {
  const long result = ::syscall(SYS_clock_gettime, clock, now);
  now->tv_sec += seconds_ahead;
  return static_cast<int>(result);
}

namespace weft::cm {
namespace {

using stats::BringUpRefusal;
using wire::Wfrc;

constexpr size_t kFixed = wire::MpaStart::kSize;
constexpr size_t kReply = kFixed + wire::MpaEnhanced::kSize;  // without private data

// A queue pair that has been told of nobody, and a peer that asks for it.
class ParkedRequest {
 public:
  ParkedRequest() : pair_(verbs::QpType::rc) {
    accepted_ = counters().connections_accepted.value();
    refusals_ = sum(counters().bring_up_refused);
    others_ = others();
    auto tcp =
        port::TcpStream::connect({}, port::Address::from_gid(kHere, port_of(pair_.qp().number())));
    EXPECT_TRUE(tcp.ok());
    peer_ = std::move(*tcp);
    request_ = mpa::Initiator{{.peer_to_peer = true}}.request(
        encode({.source_qpn = Qpn{0x000101}, .destination_qpn = pair_.qp().number(), .nonce = 7}));
  }
  void is_taken_in() {
    EXPECT_TRUE(soon([&] { return counters().connections_accepted.value() > accepted_; }));
  }
  void asks() {
    const IoVec piece{request_.data(), request_.size()};
    EXPECT_EQ(peer_.send({&piece, 1}).bytes, request_.size());
  }

  engine::Engine& engine() { return pair_.engine(); }
  const stats::EngineCounters& counters() { return engine().counters(); }
  template <class Condition>
  bool soon(Condition&& holds) {
    for (int turns = 0; turns < 20'000; ++turns) {
      engine().progress();
      if (holds()) return true;
      ::usleep(1000);
    }
    return false;
  }
  // Long enough for what is there to be seen.
  void turns() {
    for (int i = 0; i < 100; ++i) {
      engine().progress();
      ::usleep(1000);
    }
  }
  static uint64_t sum(std::span<const stats::Cell> family) {
    uint64_t n = 0;
    for (const stats::Cell& cell : family) n += cell.value();
    return n;
  }
  uint64_t others() {
    return sum(counters().start_refused) + sum(counters().cm_rejected) +
           sum(counters().accept_paused);
  }
  // Since this began; each test has one reason.
  uint64_t refused(BringUpRefusal why) {
    const uint64_t n = counters().bring_up_refused[static_cast<size_t>(why)].value();
    return n > refusals_ ? n - refusals_ : 0;
  }
  // Counted as this, once; nothing else that a connection may end of is.
  void expect_only(BringUpRefusal why) {
    EXPECT_TRUE(soon([&] { return refused(why) != 0; }));
    EXPECT_EQ(refused(why), 1U);
    EXPECT_EQ(sum(counters().bring_up_refused), refusals_ + 1);
    EXPECT_EQ(others(), others_);
  }
  // So many bytes of what the peer hears; fewer when there are no more.
  std::string heard(size_t n) {
    std::string all;
    soon([&] {
      char room[256];
      const IoVec into{room, std::min(sizeof room, n - all.size())};
      const auto t = peer_.receive({&into, 1});
      if (!t.would_block) all.append(room, t.bytes);
      return all.size() == n || t.end || t.error != 0;
    });
    return all;
  }
  void expect_rejection(const std::string& reply) {
    ASSERT_GE(reply.size(), kFixed);
    EXPECT_EQ(reply.substr(0, 16), "MPA ID Rep Frame");
    EXPECT_NE(reply[16] & 0x20, 0) << "R: rejected (spec/mpa 2.1)";
  }

 private:
  OnePair pair_;
  port::TcpStream peer_;
  std::vector<std::byte> request_;
  uint64_t accepted_ = 0;  // before
  uint64_t refusals_ = 0;  // before
  uint64_t others_ = 0;    // before
};

// spec/addressing 5.2: park ... max 30 s. Then it is told that the queue pair is not ready.
void waits_for_30_seconds() {
  ParkedRequest p;
  p.is_taken_in();
  p.asks();
  p.turns();
  seconds_ahead = 20;  // a busy machine takes some of the other ten for these turns
  p.turns();
  EXPECT_EQ(p.refused(BringUpRefusal::parked_too_long), 0U);
  seconds_ahead = 31;
  p.expect_only(BringUpRefusal::parked_too_long);
  const std::string reply = p.heard(kReply + Wfrc::kSize);
  p.expect_rejection(reply);
  const auto block = Wfrc::parse(std::as_bytes(std::span{reply}).subspan(kReply));
  ASSERT_TRUE(block);
  EXPECT_EQ(block->code, Wfrc::Code::not_ready);
  EXPECT_EQ(block->destination_qpn, Qpn{0x000101});
}

TEST(BringUp, ARequestWaitsFor30SecondsForItsQueuePair) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto run = [] {
    waits_for_30_seconds();
    _exit(::testing::Test::HasFailure() ? 1 : 0);
  };
  EXPECT_EXIT(run(), ::testing::ExitedWithCode(0), "");
}

// There is memory for the fixed part of the Request, and none for its private data.
TEST(BringUp, ARequestForWhichThereIsNoMemoryIsRejected) {
  ParkedRequest p;
  p.is_taken_in();
  {
    auto h = p.engine().hold();  // the engine's own thread does not look before that
    p.asks();
    most_memory = kReply;
  }
  const bool counted = p.soon([&] { return p.refused(BringUpRefusal::no_memory) != 0; });
  most_memory = SIZE_MAX;
  EXPECT_TRUE(counted);
  p.expect_only(BringUpRefusal::no_memory);
  p.expect_rejection(p.heard(kReply));
}

// Of two queue pairs at one port, by turns. There is memory for some of those that one of them
// takes over when it is ready, and not for all.
TEST(BringUp, NoParkedRequestIsLostForWantOfMemory) {
  constexpr uint64_t kEach = 100;
  OnePair pairs[] = {OnePair{verbs::QpType::rc}, OnePair{verbs::QpType::rc}};
  ASSERT_EQ(port_of(pairs[0].qp().number()), port_of(pairs[1].qp().number()));
  engine::Engine& engine = pairs[0].engine();
  const auto refused = [&](BringUpRefusal why) {
    return engine.counters().bring_up_refused[static_cast<size_t>(why)].value();
  };
  const auto soon = [&](auto&& holds) {
    for (int turns = 0; turns < 20'000; ++turns) {
      if (holds()) return true;
      engine.progress();
      ::usleep(1000);
    }
    return false;
  };
  const uint64_t before = engine.counters().connections_accepted.value();
  std::vector<port::TcpStream> peers;
  for (uint64_t i = 0; i < 2 * kEach; ++i) {
    const Qpn to = pairs[i % 2].qp().number();
    auto tcp = port::TcpStream::connect({}, port::Address::from_gid(kHere, port_of(to)));
    ASSERT_TRUE(tcp.ok());
    std::vector<std::byte> request = mpa::Initiator{{.peer_to_peer = true}}.request(
        encode({.source_qpn = Qpn{0x000101}, .destination_qpn = to, .nonce = i + 1}));
    const IoVec piece{request.data(), request.size()};
    ASSERT_TRUE(soon([&] { return tcp->send({&piece, 1}).bytes == request.size(); }));
    peers.push_back(std::move(*tcp));
    ASSERT_TRUE(soon([&] { return engine.counters().connections_accepted.value() > before + i; }));
  }
  for (OnePair& pair : pairs) pair.to_init();
  // Their peer is another one than asks.
  constexpr Qpn kPeer{0x000102};
  uint64_t none = refused(BringUpRefusal::qp_left);
  most_memory = 4000;
  const bool ready = pairs[0].try_rtr(kPeer).ok();
  most_memory = SIZE_MAX;
  EXPECT_FALSE(ready);
  EXPECT_EQ(refused(BringUpRefusal::qp_left) - none, kEach);
  none = refused(BringUpRefusal::not_your_peer);
  pairs[1].to_rtr(kPeer);
  EXPECT_TRUE(soon([&] { return refused(BringUpRefusal::not_your_peer) == none + kEach; }));
}

}  // namespace
}  // namespace weft::cm
