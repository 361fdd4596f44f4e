// The baselines between two threads of this process: do they move what they say, and see damage?
#include <gtest/gtest.h>

#include <thread>

#include "bench/work.h"

namespace weft::bench {
namespace {

constexpr uint64_t kWarmUp = 40;

struct Ends {
  Done done;
  bool initiator_intact = false;
  bool target_intact = false;
};

Phase measurement() {
  return {.warm_up = false, .messages = kWarmUp, .duration_ns = 20'000'000};
}

// Both phases; compares with `extra` messages more than were sent.
Ends run(const Spec& spec, uint64_t extra = 0) {
  auto [one, other] = make_channel();
  const auto initiator =
      make_work({.spec = spec, .role = Role::initiator, .address = "127.0.0.1", .library = {}});
  const auto target =
      make_work({.spec = spec, .role = Role::target, .address = "127.0.0.1", .library = {}});
  const Phase warm_up{.warm_up = true, .messages = kWarmUp, .duration_ns = 0};

  std::thread target_side{[&] {
    target->connect(other);
    target->serve(warm_up);
    target->clear();
    other.send("cleared");
    target->serve(measurement());
  }};
  initiator->connect(one);
  EXPECT_EQ(initiator->initiate(warm_up).messages, kWarmUp);
  (void)one.receive();
  initiator->clear();
  Ends ends;
  ends.done = initiator->initiate(measurement());
  target_side.join();
  ends.initiator_intact = initiator->intact(kWarmUp, ends.done.messages + extra);
  ends.target_intact = target->intact(kWarmUp, ends.done.messages + extra);
  return ends;
}

TEST(TcpStream, MovesItsMessagesIntact) {
  const Ends ends = run({.operation = Operation::tcp_stream, .size = 100'000});
  EXPECT_GT(ends.done.messages, 0U);
  EXPECT_GT(ends.done.seconds, 0.019);
  EXPECT_TRUE(ends.target_intact);
}

TEST(TcpFpdus, MovesItsMessagesIntact) {
  for (const bool crc : {true, false}) {
    // One FPDU, two of which the last is a short one, and more than a system call takes.
    for (const uint64_t size : {1000U, 100'000U, 2'000'000U}) {
      const Ends ends = run({.operation = Operation::tcp_fpdus, .size = size, .crc = crc});
      EXPECT_GT(ends.done.messages, 0U);
      EXPECT_GT(ends.done.seconds, 0.019);
      EXPECT_TRUE(ends.target_intact) << size;
    }
  }
}

TEST(TcpMany, EachConnectionMovesItsShare) {
  const Ends ends =
      run({.operation = Operation::tcp_stream, .size = 100'000, .connections = 8, .busy = 8});
  EXPECT_GT(ends.done.messages, 8U);
  EXPECT_TRUE(ends.target_intact);
}

TEST(TcpMany, SomeMayBeIdle) {
  const Ends ends =
      run({.operation = Operation::tcp_stream, .size = 100'000, .connections = 6, .busy = 2});
  EXPECT_GT(ends.done.messages, 2U);
  EXPECT_TRUE(ends.target_intact);
}

TEST(TcpPingPong, BothSidesGetWhatWasSent) {
  for (const Wait wait : {Wait::event, Wait::poll}) {
    const Ends ends = run({.operation = Operation::tcp_ping_pong, .size = 64, .wait = wait});
    EXPECT_GT(ends.done.messages, 0U);
    EXPECT_TRUE(ends.initiator_intact);
    EXPECT_TRUE(ends.target_intact);
    EXPECT_GT(ends.done.extra.at("rtt_us"), 0);
    EXPECT_LE(ends.done.extra.at("rtt_min_us"), ends.done.extra.at("rtt_us"));
    EXPECT_LE(ends.done.extra.at("rtt_us"), ends.done.extra.at("rtt_p99_us"));
  }
}

TEST(TcpPingPong, MissingMessageIsSeen) {
  // Large enough that not every slot of the memory is used in the time.
  const Ends ends =
      run({.operation = Operation::tcp_ping_pong, .size = 64, .wait = Wait::event}, 1);
  EXPECT_FALSE(ends.initiator_intact);
  EXPECT_FALSE(ends.target_intact);
}

TEST(TcpChunks, MovesItsChunksIntact) {
  // The last piece of a chunk is a short one, or the only one.
  for (const uint64_t piece : {30'000U, 1'000'000U}) {
    const Ends ends = run({.operation = Operation::tcp_chunk, .size = 100'000, .piece = piece});
    EXPECT_GT(ends.done.messages, 2U);
    EXPECT_GT(ends.done.seconds, 0.019);
    EXPECT_TRUE(ends.target_intact);
  }
}

TEST(UdpPingPong, BothSidesGetWhatWasSent) {
  for (const Wait wait : {Wait::event, Wait::poll}) {
    const Ends ends = run({.operation = Operation::udp_ping_pong, .size = 64, .wait = wait});
    EXPECT_GT(ends.done.messages, 0U);
    EXPECT_TRUE(ends.initiator_intact);
    EXPECT_TRUE(ends.target_intact);
    EXPECT_GT(ends.done.extra.at("rtt_us"), 0);
  }
}

}  // namespace
}  // namespace weft::bench
