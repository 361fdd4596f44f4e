// Sends that come before their receive (design/04, spec/rdmap 4.5 to 4.7): held, reported, bounded,
// and never lost.

#include <gtest/gtest.h>

#include "tests/support/pair.h"

namespace weft::test {
namespace {

using namespace std::chrono_literals;
using work::Operation;
using work::Status;
using Kind = work::StreamEnd::Kind;

PairOptions plain() {
  PairOptions o;
  o.mpa.extension = false;
  return o;
}

// `count` Sends of `size` bytes from A; each has bytes of its own.
[[nodiscard]] std::vector<Buffer> post_sends(Pair& p, size_t count, size_t size) {
  std::vector<Buffer> data;
  for (size_t i = 0; i < count; ++i) data.push_back(pattern_bytes(size, i));
  for (size_t i = 0; i < count; ++i) {
    p.a.host.post({.wr_id = i, .operation = Operation::send, .signaled = true},
                  {segment(p.a.host, data[i])});
  }
  return data;
}

struct Inbox {
  Inbox(Pair& p, size_t count, size_t size) : boxes(count, Buffer(size)) {
    for (size_t i = 0; i < count; ++i) p.b.host.post_receive(i, {segment(p.b.host, boxes[i])});
  }
  std::vector<Buffer> boxes;
};

void expect_received(const Pair& p, const Inbox& inbox, const std::vector<Buffer>& data) {
  ASSERT_EQ(p.b.host.received.size(), data.size());
  for (size_t i = 0; i < data.size(); ++i) {
    EXPECT_EQ(p.b.host.received[i].wr_id, i);
    EXPECT_TRUE(inbox.boxes[i] == data[i]) << i;
  }
}

TEST(ReceiverNotReady, SendsWaitForTheirReceives) {
  for (const uint64_t seed : sim::seeds(10)) {
    WEFT_SIM_TRACE(seed);
    PairOptions o{.seed = seed};
    o.link.segmentation = sim::Segmentation::random;
    o.mpa.extension = seed % 2 == 0;
    Pair p{o};
    const auto data = post_sends(p, 30, 1 + seed * 1777);
    p.drive(1s);
    EXPECT_TRUE(p.b.host.received.empty());
    const Inbox inbox(p, 30, 1 + seed * 1777);
    p.b.receives_posted();
    p.drive();
    expect_received(p, inbox, data);
    EXPECT_EQ(p.a.host.sent.size(), 30U);
  }
}

// 12 MiB of Sends and no receive: the sender keeps to its credit, so that the receiver goes on
// reading and its own reads, its Delivereds and its Writes flow.
TEST(ReceiverNotReady, ReadsAndWritesFlowPastFullCredit) {
  Pair p;
  const auto data = post_sends(p, 12, 1 << 20);
  p.drive(1s);
  EXPECT_TRUE(p.a.host.sent.empty());

  Buffer source = pattern_bytes(300'000, 50);
  Buffer sink(300'000);
  Buffer target(300'000);
  const Stag source_stag = p.a.host.add_region(source);
  const Stag target_stag = p.a.host.add_region(target);
  p.b.host.post({.wr_id = 1,
                 .operation = Operation::read,
                 .signaled = true,
                 .remote_stag = source_stag,
                 .remote_to = address_of(source)},
                {segment(p.b.host, sink)});
  p.b.host.post({.wr_id = 2,
                 .operation = Operation::write,
                 .signaled = true,
                 .remote_stag = target_stag,
                 .remote_to = address_of(target)},
                {segment(p.b.host, source)});
  p.drive(1s);
  EXPECT_EQ(p.b.host.sent.size(), 2U);
  EXPECT_TRUE(sink == source && target == source);

  const Inbox inbox(p, 12, 1 << 20);
  p.b.receives_posted();
  p.drive();
  expect_received(p, inbox, data);
  EXPECT_EQ(p.a.host.sent.size(), 12U);
}

// A Read and an Atomic behind a Send that waits: they wait too, and see what the program did
// meanwhile.
TEST(ReceiverNotReady, RequestsBehindASendWaitWithIt) {
  Pair p;
  Buffer word(8);
  Buffer memory(64);
  Buffer sink(64);
  const Stag stag = p.b.host.add_region(memory);
  auto data = post_sends(p, 1, 100);
  p.a.host.post({.wr_id = 1,
                 .operation = Operation::fetch_add,
                 .signaled = true,
                 .remote_stag = stag,
                 .remote_to = address_of(memory),
                 .compare_add = 1},
                {segment(p.a.host, word)});
  p.a.host.post({.wr_id = 2,
                 .operation = Operation::read,
                 .signaled = true,
                 .remote_stag = stag,
                 .remote_to = address_of(memory)},
                {segment(p.a.host, sink)});
  p.drive(1s);
  EXPECT_TRUE(p.a.host.sent.empty());
  const Buffer fresh = pattern_bytes(64, 77);
  std::copy(fresh.begin(), fresh.end(), memory.begin());
  std::memset(memory.data(), 0, 8);
  const Inbox inbox(p, 1, 100);
  p.b.receives_posted();
  p.drive();
  EXPECT_EQ(p.a.host.sent.size(), 3U);
  EXPECT_EQ(sink, memory);
  EXPECT_EQ(memory[0], std::byte{1});
}

TEST(ReceiverNotReady, OneMessageLargerThanTheCredit) {
  Pair p;
  const auto data = post_sends(p, 1, (9 << 20) + 5);
  const auto behind = post_sends(p, 2, 10);
  p.drive(1s);
  EXPECT_TRUE(p.a.host.sent.empty());
  Inbox large(p, 1, (9 << 20) + 5);
  Inbox small(p, 2, 10);
  p.b.receives_posted();
  p.drive();
  EXPECT_EQ(p.a.host.sent.size(), 3U);
  EXPECT_TRUE(large.boxes[0] == data[0]);
}

TEST(ReceiverNotReady, AReceiveThatComesInTheMiddleOfAMessage) {
  for (const uint64_t seed : sim::seeds(20)) {
    WEFT_SIM_TRACE(seed);
    PairOptions o{.seed = seed, .rnr_retry = 1, .min_rnr_timer = 1};
    o.link.segmentation = sim::Segmentation::mss;
    o.link.jitter = 200us;
    o.mpa.extension = seed % 2 == 0;
    o.tune = [](rdmap::StreamConfig& c, bool) { c.rnr_retry = 7; };
    Pair p{o};
    const auto data = post_sends(p, 1, 2'000'000);
    std::unique_ptr<Inbox> inbox;
    p.scheduler.after(Duration{static_cast<int64_t>(seed) * 150'000}, [&] {
      inbox = std::make_unique<Inbox>(p, 1, 2'000'000);
      p.b.receives_posted();
    });
    p.drive();
    expect_received(p, *inbox, data);
  }
}

// The time that the receiver asks for, times the retries: then, and not before.
TEST(ReceiverNotReady, TheSenderGivesUpInTime) {
  for (const uint8_t retry : {0, 1, 6}) {
    Pair p{{.rnr_retry = retry, .min_rnr_timer = 20}};
    const auto data = post_sends(p, 3, 100);
    const Duration patience = 10'240us * (retry + 1);
    p.drive(patience);
    EXPECT_FALSE(p.a.host.end) << "not even the report can have been here that early";
    p.drive(5ms);
    ASSERT_EQ(p.a.host.sent.size(), 3U);
    EXPECT_EQ(p.a.host.sent[0].status, Status::rnr_retry_exceeded);
    EXPECT_EQ(p.a.host.sent[1].status, Status::flushed);
    EXPECT_EQ(p.a.host.end->kind, Kind::local_error);
    EXPECT_EQ(p.b.host.end->kind, Kind::terminated);
  }
}

TEST(ReceiverNotReady, EachMessageHasItsOwnPatience) {
  Pair p{{.rnr_retry = 0, .min_rnr_timer = 20}};
  const auto data = post_sends(p, 5, 10);
  Buffer box(10);
  for (int i = 0; i < 5; ++i) {
    p.drive(8ms);
    ASSERT_FALSE(p.a.host.end) << i;
    p.b.host.post_receive(0, {segment(p.b.host, box)});
    p.b.receives_posted();
  }
  p.drive();
  EXPECT_EQ(p.a.host.sent.size(), 5U);
  EXPECT_EQ(p.a.host.sent[4].status, Status::success);
}

TEST(ReceiverNotReady, ForEverMeansForEver) {
  Pair p{{.rnr_retry = 7}};
  const auto data = post_sends(p, 1, 10);
  p.drive(24h);
  EXPECT_FALSE(p.a.host.end);
}

TEST(ReceiverNotReady, ImmediatesWaitLikeSends) {
  Pair p;
  Buffer from = pattern_bytes(5000, 1);
  Buffer to(5000);
  p.a.host.post({.operation = Operation::write_immediate,
                 .signaled = true,
                 .remote_stag = p.b.host.add_region(to),
                 .remote_to = address_of(to),
                 .immediate = 7},
                {segment(p.a.host, from)});
  p.drive(1s);
  EXPECT_EQ(to, from) << "the Write needs no receive";
  EXPECT_TRUE(p.a.host.sent.empty());
  p.b.host.post_receive(1, {});
  p.b.receives_posted();
  p.drive();
  EXPECT_EQ(p.b.host.received.at(0).arrival.length, 5000U);
  EXPECT_EQ(p.a.host.sent.size(), 1U);
}

// --- a plain peer

// It knows no credit: what does not fit stays in the socket, and the sender's window fills.
TEST(ReceiverNotReady, APlainPeerIsHeldUpByTcp) {
  PairOptions o = plain();
  o.link.window = 1 << 20;
  Pair p{o};
  const auto data = post_sends(p, 20, 1 << 20);
  p.drive(5s);
  const size_t through = p.a.host.sent.size();
  EXPECT_GE(through, 3U);
  EXPECT_LE(through, 6U) << "4 MiB here, 1 MiB on the way";
  EXPECT_FALSE(p.b.stream.wants_bytes());
  const Inbox inbox(p, 20, 1 << 20);
  p.b.receives_posted();
  p.drive();
  expect_received(p, inbox, data);
  EXPECT_EQ(p.a.host.sent.size(), 20U);
}

TEST(ReceiverNotReady, APlainPeerIsToldAfterTheWait) {
  PairOptions o = plain();
  o.tune = [](rdmap::StreamConfig& c, bool) { c.rnr_wait = 2s; };
  Pair p{o};
  // More than the kernel takes at once, so that some are not complete.
  const auto data = post_sends(p, 30, 1 << 20);
  p.drive(1900ms);
  EXPECT_FALSE(p.a.host.end || p.b.host.end);
  p.drive(5s);
  ASSERT_TRUE(p.a.host.end && p.b.host.end);
  EXPECT_EQ(p.b.host.end->error, wire::term::kUntaggedNoBuffer);
  EXPECT_EQ(p.a.host.end->kind, Kind::terminated);
  ASSERT_EQ(p.a.host.sent.size(), 30U);
  size_t blamed = 0;
  for (const auto& d : p.a.host.sent) blamed += d.status == Status::rnr_retry_exceeded;
  EXPECT_EQ(blamed, 1U);
  EXPECT_TRUE(p.a.closed() && p.b.closed());
}

TEST(ReceiverNotReady, APlainPeerMayBeSlowForLongerThanTheWait) {
  Pair p{plain()};
  const auto data = post_sends(p, 12, 100'000);
  Buffer box(100'000);
  for (int i = 0; i < 12; ++i) {
    p.drive(7s);
    ASSERT_FALSE(p.b.host.end) << "receive " << i;
    p.b.host.post_receive(0, {segment(p.b.host, box)});
    p.b.receives_posted();
  }
  p.drive(1s);
  EXPECT_EQ(p.b.host.received.size(), 12U);
}

}  // namespace
}  // namespace weft::test
