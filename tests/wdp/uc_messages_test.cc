// Sends and Writes of all kinds between two UC sessions: what arrives, and what completes.

#include <gtest/gtest.h>

#include "tests/support/uc_pair.h"

namespace weft::test {
namespace {

using namespace std::chrono_literals;
using wire::WdpDrop;
using work::Operation;
using work::SendWqe;
using work::Status;

// A side with a target, a source and room to receive.
struct Messages : ::testing::Test {
  void post_receives(UcSide& side, size_t count, Buffer& memory, size_t each) {
    const auto all = segment(side.host(), memory);
    for (size_t i = 0; i < count; ++i) {
      side.post_receive(i, {{all.address + i * each, static_cast<uint32_t>(each), all.lkey}});
    }
  }
};

// More goes out behind a question than a small window lets in: it has to be asked about, too, or
// the session stands until its next keepalive. From either side of "close by".
TEST_F(Messages, AWindowThatStaysFullIsAskedAboutAgain) {
  for (const bool close_by : {true, false}) {
    UcPair p{{.max_payload = 576, .window = 8192, .close_by = close_by}};
    Buffer from = pattern_bytes(1'000'000, 1);
    Buffer to(from.size());
    const Stag there = p.b.host().add_region(to);
    const auto all = segment(p.a.host(), from);
    for (uint32_t i = 0; i < 10; ++i) {
      p.a.host().post({.wr_id = i,
                       .operation = Operation::write,
                       .signaled = true,
                       .remote_stag = there,
                       .remote_to = TaggedOffset{address_of(to).value() + i * 100'000}},
                      {{all.address + i * 100'000, 100'000, all.lkey}});
    }
    p.drive();
    EXPECT_EQ(p.a.host().sent.size(), 10U) << close_by;
    EXPECT_EQ(to, from) << close_by;
  }
}

TEST_F(Messages, AWriteIsPlacedAndNobodyHearsOfIt) {
  UcPair p;
  Buffer from = pattern_bytes(100'000, 1);
  Buffer to(100'000);
  p.a.host().post({.wr_id = 4,
                   .operation = Operation::write,
                   .signaled = true,
                   .remote_stag = p.b.host().add_region(to),
                   .remote_to = address_of(to)},
                  {segment(p.a.host(), from)});
  p.drive();
  EXPECT_EQ(to, from);
  ASSERT_EQ(p.a.host().sent.size(), 1U);
  EXPECT_EQ(p.a.host().sent[0].wr_id, 4U);
  EXPECT_EQ(p.a.host().sent[0].status, Status::success);
  EXPECT_TRUE(p.b.host().received.empty());
  EXPECT_EQ(p.b.counters().drops.total(), 0U);
  EXPECT_EQ(p.b.counters().datagrams_received, 71U);  // of 1424 bytes each
  EXPECT_EQ(p.a.trains, 2U);                          // 44 datagrams of 1472 bytes in one
}

TEST_F(Messages, AWriteWithImmediateTakesAReceiveAndLeavesItsBufferAlone) {
  UcPair p;
  Buffer from = pattern_bytes(5000, 1);
  Buffer to(5000);
  Buffer room = pattern_bytes(100, 2);
  const Buffer before = room;
  p.b.post_receive(77, {segment(p.b.host(), room)});
  p.a.host().post({.operation = Operation::write_immediate,
                   .solicited = true,
                   .remote_stag = p.b.host().add_region(to),
                   .remote_to = address_of(to),
                   .immediate = 0xcafef00d},
                  {segment(p.a.host(), from)});
  p.drive();
  EXPECT_EQ(to, from);
  EXPECT_EQ(room, before);
  ASSERT_EQ(p.b.host().received.size(), 1U);
  const auto& r = p.b.host().received[0];
  EXPECT_EQ(r.wr_id, 77U);
  EXPECT_EQ(r.status, Status::success);
  EXPECT_TRUE(r.arrival.write_with_immediate && r.arrival.has_immediate && r.arrival.solicited);
  EXPECT_EQ(r.arrival.immediate, 0xcafef00d);
  EXPECT_EQ(r.arrival.length, 5000U);
}

TEST_F(Messages, SendsOfAllKindsArriveInOrder) {
  UcPair p;
  Buffer room(40'000);
  Buffer window(64);
  post_receives(p.b, 4, room, 10'000);
  const Stag stag = p.b.host().add_region(window);
  std::vector<Buffer> sources;
  for (size_t i = 0; i < 4; ++i) sources.push_back(pattern_bytes(1 + i * 3000, i));
  const Operation kinds[] = {Operation::send, Operation::send_immediate, Operation::send_invalidate,
                             Operation::send};
  for (size_t i = 0; i < 4; ++i) {
    p.a.host().post({.wr_id = i,
                     .operation = kinds[i],
                     .signaled = true,
                     .solicited = i >= 2,
                     .remote_stag = stag,
                     .immediate = 0x01020304},
                    {segment(p.a.host(), sources[i])});
  }
  p.drive();
  ASSERT_EQ(p.b.host().received.size(), 4U);
  for (size_t i = 0; i < 4; ++i) {
    const auto& r = p.b.host().received[i];
    EXPECT_EQ(r.wr_id, i);
    EXPECT_EQ(r.arrival.length, sources[i].size());
    EXPECT_EQ(r.arrival.solicited, i >= 2);
    EXPECT_EQ(r.arrival.has_immediate, i == 1);
    EXPECT_EQ(r.arrival.invalidated, i == 2);
    EXPECT_FALSE(r.arrival.write_with_immediate);
    EXPECT_TRUE(std::equal(sources[i].begin(), sources[i].end(),
                           room.begin() + static_cast<ptrdiff_t>(i * 10'000)));
    EXPECT_EQ(p.a.host().sent[i].wr_id, i);
  }
  EXPECT_EQ(p.b.host().received[1].arrival.immediate, 0x01020304U);
  EXPECT_EQ(p.b.host().received[2].arrival.invalidated_stag, stag);
  EXPECT_EQ(p.b.host().invalidated, std::vector<Stag>{stag});
}

TEST_F(Messages, AReadBringsTheData) {
  UcPair p;
  Buffer source = pattern_bytes(3'000'000, 1);
  Buffer sink(3'000'000);
  p.a.host().post({.wr_id = 9,
                   .operation = Operation::read,
                   .signaled = true,
                   .remote_stag = p.b.host().add_region(source),
                   .remote_to = address_of(source)},
                  {segment(p.a.host(), sink)});
  p.drive();
  EXPECT_TRUE(sink == source);
  ASSERT_EQ(p.a.host().sent.size(), 1U);
  EXPECT_EQ(p.a.host().sent[0].status, Status::success);
  EXPECT_EQ(p.a.counters().drops.total(), 0U);
  EXPECT_EQ(p.a.counters().ranges_repeated, 0U);
}

}  // namespace
}  // namespace weft::test
