// RDMAP streams against each other over a simulated TCP: what every work request promises.

#include <gtest/gtest.h>

#include "tests/support/pair.h"

namespace weft::test {
namespace {

using sim::Segmentation;
using work::Operation;
using work::Status;

PairOptions with_seed(uint64_t seed) {
  PairOptions o{.seed = seed};
  constexpr Segmentation kinds[] = {Segmentation::whole, Segmentation::random, Segmentation::mss,
                                    Segmentation::random};
  o.link.segmentation = kinds[seed % 4];
  o.link.window = seed % 3 == 0 ? 20'000 : 1 << 20;
  o.link.short_write = seed % 2 == 0 ? 0.3 : 0;
  o.mpa.extension = seed % 5 != 0;
  o.mpa.crc = seed % 7 != 0;
  o.mpa.send_markers = seed % 11 == 0 && !o.mpa.extension;
  return o;
}

TEST(RdmapStream, write_places_exactly_its_bytes) {
  for (const uint64_t seed : sim::seeds(60)) {
    WEFT_SIM_TRACE(seed);
    PairOptions o = with_seed(seed);
    o.mpa.send_markers = false;
    Pair p{o};
    const size_t size = seed * seed * 977 % 300'000;
    Buffer from = pattern_bytes(size, seed);
    Buffer to = pattern_bytes(size + 64, seed + 1);
    Buffer expected = to;
    std::copy(from.begin(), from.end(), expected.begin() + 32);
    p.a.host.post({.wr_id = 7,
                   .operation = Operation::write,
                   .signaled = true,
                   .remote_stag = p.b.host.add_region(to),
                   .remote_to = address_of(to, 32)},
                  {segment(p.a.host, from)});
    p.drive();
    EXPECT_EQ(to, expected);
    ASSERT_EQ(p.a.host.sent.size(), 1U);
    EXPECT_EQ(p.a.host.sent[0].wr_id, 7U);
    EXPECT_EQ(p.a.host.sent[0].status, Status::success);
    EXPECT_FALSE(p.a.host.end);
  }
}

TEST(RdmapStream, send_takes_one_receive_and_keeps_to_its_length) {
  for (const uint64_t seed : sim::seeds(40)) {
    WEFT_SIM_TRACE(seed);
    PairOptions o = with_seed(seed);
    o.mpa.send_markers = false;
    Pair p{o};
    const size_t size = seed * 3571 % 150'000;
    Buffer from = pattern_bytes(size, seed);
    Buffer first = pattern_bytes(size / 2, 3);
    Buffer second = pattern_bytes(size - size / 2 + 40, 4);
    const Buffer tail{second.end() - 40, second.end()};
    const bool late = seed % 2 == 0;  // the receive comes after the message
    auto post = [&] {
      p.b.host.post_receive(5, {segment(p.b.host, first), segment(p.b.host, second)});
    };
    if (!late) post();
    p.a.host.post({.wr_id = 1, .operation = Operation::send, .signaled = true, .solicited = true},
                  {segment(p.a.host, from)});
    p.drive(std::chrono::seconds{1});
    if (late) {
      EXPECT_TRUE(p.b.host.received.empty());
      // spec/rdmap 4.4: between wefts a Send is complete when it is consumed.
      EXPECT_EQ(p.a.host.sent.empty(), o.mpa.extension);
      post();
      p.b.receives_posted();
      p.drive();
    }
    ASSERT_EQ(p.b.host.received.size(), 1U);
    EXPECT_EQ(p.b.host.received[0].arrival.length, size);
    EXPECT_TRUE(p.b.host.received[0].arrival.solicited);
    Buffer got = first;
    got.insert(got.end(), second.begin(), second.end() - 40);
    EXPECT_EQ(got, from);
    EXPECT_EQ((Buffer{second.end() - 40, second.end()}), tail);
    ASSERT_EQ(p.a.host.sent.size(), 1U);
    EXPECT_EQ(p.a.host.sent[0].status, Status::success);
  }
}

TEST(RdmapStream, read_scatters_the_remote_bytes) {
  for (const uint64_t seed : sim::seeds(40)) {
    WEFT_SIM_TRACE(seed);
    Pair p{with_seed(seed)};
    const size_t size = 1 + seed * 7919 % 200'000;
    Buffer source = pattern_bytes(size, seed);
    Buffer one(size / 3);
    Buffer two(size - size / 3);
    p.a.host.post({.wr_id = 9,
                   .operation = Operation::read,
                   .signaled = true,
                   .remote_stag = p.b.host.add_region(source),
                   .remote_to = address_of(source)},
                  {segment(p.a.host, one), segment(p.a.host, two)});
    p.drive();
    Buffer got = one;
    got.insert(got.end(), two.begin(), two.end());
    EXPECT_EQ(got, source);
    ASSERT_EQ(p.a.host.sent.size(), 1U);
    EXPECT_EQ(p.a.host.sent[0].status, Status::success);
  }
}

TEST(RdmapStream, write_with_immediate_tells_the_length_of_the_write) {
  Pair p;
  Buffer from = pattern_bytes(70'000, 1);
  Buffer to(70'000);
  p.b.host.post_receive(3, {});
  p.a.host.post({.operation = Operation::write_immediate,
                 .signaled = true,
                 .remote_stag = p.b.host.add_region(to),
                 .remote_to = address_of(to),
                 .immediate = 0x01020304},
                {segment(p.a.host, from)});
  p.drive();
  EXPECT_EQ(to, from);
  ASSERT_EQ(p.b.host.received.size(), 1U);
  EXPECT_TRUE(p.b.host.received[0].arrival.write_with_immediate);
  EXPECT_EQ(p.b.host.received[0].arrival.length, 70'000U);
  EXPECT_EQ(p.b.host.received[0].arrival.immediate, 0x01020304U);
}

TEST(RdmapStream, atomics_return_the_old_value) {
  Pair p;
  Buffer target(64);
  Buffer add_result(8);
  Buffer swap_result(8);
  uint64_t value = 41;
  std::memcpy(target.data() + 8, &value, sizeof value);
  const Stag stag = p.b.host.add_region(target);
  p.a.host.post({.operation = Operation::fetch_add,
                 .signaled = true,
                 .remote_stag = stag,
                 .remote_to = address_of(target, 8),
                 .compare_add = 1},
                {segment(p.a.host, add_result)});
  p.a.host.post({.operation = Operation::compare_swap,
                 .signaled = true,
                 .remote_stag = stag,
                 .remote_to = address_of(target, 8),
                 .compare_add = 42,
                 .swap = 0xfedcba9876543210U},
                {segment(p.a.host, swap_result)});
  p.drive();
  ASSERT_EQ(p.a.host.sent.size(), 2U);
  std::memcpy(&value, add_result.data(), sizeof value);
  EXPECT_EQ(value, 41U);
  std::memcpy(&value, swap_result.data(), sizeof value);
  EXPECT_EQ(value, 42U);
  std::memcpy(&value, target.data() + 8, sizeof value);
  EXPECT_EQ(value, 0xfedcba9876543210U);
}

TEST(RdmapStream, a_wrong_key_ends_the_stream_and_blames_the_write) {
  Pair p;
  Buffer from = pattern_bytes(100, 1);
  Buffer to(100);
  const work::LocalSegment s = segment(p.a.host, from);
  p.a.host.post({.wr_id = 1,
                 .operation = Operation::write,
                 .signaled = true,
                 .remote_stag = p.b.host.add_region(to),
                 .remote_to = address_of(to)},
                {s});
  p.a.host.post({.wr_id = 2,
                 .operation = Operation::write,
                 .signaled = true,
                 .remote_stag = Stag{0xdead00},
                 .remote_to = address_of(to)},
                {s});
  p.a.host.post({.wr_id = 3, .operation = Operation::send, .signaled = true}, {s});
  p.drive();
  ASSERT_EQ(p.a.host.sent.size(), 3U);
  EXPECT_EQ(p.a.host.sent[0].status, Status::success);
  EXPECT_EQ(p.a.host.sent[1].status, Status::remote_access);
  EXPECT_EQ(p.a.host.sent[2].status, Status::flushed);
  ASSERT_TRUE(p.a.host.end && p.b.host.end);
  EXPECT_EQ(p.a.host.end->kind, work::StreamEnd::Kind::terminated);
  EXPECT_EQ(p.b.host.end->kind, work::StreamEnd::Kind::protocol_error);
  EXPECT_EQ(p.b.host.end->error, wire::term::kTaggedInvalidStag);
}

TEST(RdmapStream, a_wrong_local_key_fails_after_those_before_it_are_through) {
  Pair p;
  Buffer from = pattern_bytes(100, 1);
  Buffer to(100);
  p.a.host.post({.wr_id = 1,
                 .operation = Operation::write,
                 .remote_stag = p.b.host.add_region(to),
                 .remote_to = address_of(to)},
                {segment(p.a.host, from)});
  p.a.host.post({.wr_id = 2, .operation = Operation::send, .signaled = true},
                {{address_of(from).value(), 100, Stag{5}}});
  p.drive();
  ASSERT_EQ(p.a.host.sent.size(), 2U);
  EXPECT_EQ(p.a.host.sent[0].status, Status::success);
  EXPECT_EQ(p.a.host.sent[1].status, Status::local_protection);
  EXPECT_EQ(to, from);
}

TEST(RdmapStream, orderly_close_delivers_what_was_posted) {
  Pair p;
  Buffer from = pattern_bytes(1'000'000, 1);
  Buffer to(1'000'000);
  p.a.host.post({.operation = Operation::write,
                 .remote_stag = p.b.host.add_region(to),
                 .remote_to = address_of(to)},
                {segment(p.a.host, from)});
  p.a.stream.close(p.scheduler.now());
  p.drive();
  EXPECT_EQ(to, from);
  ASSERT_TRUE(p.a.host.end && p.b.host.end);
  EXPECT_EQ(p.a.host.end->kind, work::StreamEnd::Kind::closed);
  EXPECT_EQ(p.b.host.end->kind, work::StreamEnd::Kind::peer_closed);
  EXPECT_TRUE(p.a.closed() && p.b.closed());
}

TEST(RdmapStream, sender_gives_up_when_no_receive_comes) {
  PairOptions o{.rnr_retry = 2, .min_rnr_timer = 14};
  Pair p{o};
  Buffer from = pattern_bytes(100, 1);
  p.a.host.post({.wr_id = 1, .operation = Operation::send, .signaled = true},
                {segment(p.a.host, from)});
  p.drive();
  ASSERT_EQ(p.a.host.sent.size(), 1U);
  EXPECT_EQ(p.a.host.sent[0].status, Status::rnr_retry_exceeded);
}

}  // namespace
}  // namespace weft::test
