// Messages that come before their receive, and what waits behind them (spec/rdmap 4.5).

#include "tests/unit/rdmap/receive_path_fixture.h"

namespace weft::rdmap {
namespace {

// spec/rdmap 4: nothing behind a message that waits is covered, and Writes are placed all the same.
TEST_F(ReceivePathTest, WhatStandsBehindAnEarlyArrivalIsNotCovered) {
  Buffer memory(64);
  Buffer inbox(64);
  const Stag stag = host.add_region(memory);
  const uint64_t to = test::address_of(memory).value();
  EXPECT_FALSE(send(1, pattern_bytes(10, 1), 0, true, true));
  EXPECT_TRUE(parts->delivery.is_waiting());
  EXPECT_EQ(parts->delivery.due(), Delivery::Due::now);
  EXPECT_FALSE(hears(tagged({.stag = stag, .to = to, .ack_wanted = true}, pattern_bytes(8, 2))));
  EXPECT_EQ((Buffer{memory.begin(), memory.begin() + 8}), pattern_bytes(8, 2));
  EXPECT_FALSE(hears(
      test::read_request(1, {.size = 8, .source_stag = stag, .source_to = TaggedOffset{to}})));
  EXPECT_EQ(run(), 0U);
  EXPECT_TRUE(parts->inbound.empty()) << "a Read waits behind it";

  host.post_receive(3, {segment(host, inbox)});
  const auto moved = parts->path.receives_posted();
  ASSERT_TRUE(moved.ok());
  EXPECT_TRUE(*moved);
  EXPECT_EQ(run(), 3U);
  EXPECT_EQ(parts->inbound.size(), 1U);
  EXPECT_EQ((Buffer{inbox.begin(), inbox.begin() + 10}), pattern_bytes(10, 1));
  EXPECT_FALSE(parts->delivery.is_waiting());
}

TEST_F(ReceivePathTest, AReceiveThatComesInTheMiddleOfAMessageTakesItsRest) {
  Buffer inbox(40, std::byte{0xcc});
  const Buffer data = pattern_bytes(40, 3);
  EXPECT_FALSE(send(1, {data.begin(), data.begin() + 15}, 0, false));
  EXPECT_TRUE(parts->path.waits_for_receive());
  host.post_receive(3, {segment(host, inbox)});
  ASSERT_TRUE(parts->path.receives_posted().ok());
  EXPECT_FALSE(parts->path.waits_for_receive());
  EXPECT_FALSE(parts->delivery.is_waiting());
  EXPECT_FALSE(send(1, {data.begin() + 15, data.end()}, 15));
  ASSERT_EQ(host.received.size(), 1U);
  EXPECT_EQ(inbox, data);
  EXPECT_EQ(run(), 1U);
}

TEST_F(ReceivePathTest, ReceivesPostedWithoutAnyIsNoProgress) {
  EXPECT_FALSE(send(1, {}));
  const auto moved = parts->path.receives_posted();
  ASSERT_TRUE(moved.ok());
  EXPECT_FALSE(*moved);
}

// Reads that wait behind a Send count against the IRD like those that are being answered.
TEST_F(ReceivePathTest, TheIrdHoldsForReadsThatWait) {
  configure(true, 2);
  const auto read = [](uint32_t msn) { return test::read_request(msn, {.size = 0}); };
  EXPECT_FALSE(hears(read(1)));
  EXPECT_FALSE(send(1, {}));
  EXPECT_FALSE(hears(read(2)));
  EXPECT_EQ(hears(read(3)), term::kOperationCatastrophicStream);
}

TEST_F(ReceivePathTest, AnEarlyImmediateKeepsTheLengthOfItsWrite) {
  Buffer memory(64);
  const Stag stag = host.add_region(memory);
  EXPECT_FALSE(
      hears(tagged({.stag = stag, .to = test::address_of(memory).value()}, pattern_bytes(33, 1))));
  EXPECT_FALSE(hears(test::immediate(1, 7)));
  host.post_receive(1, {});
  ASSERT_TRUE(parts->path.receives_posted().ok());
  ASSERT_EQ(host.received.size(), 1U);
  EXPECT_EQ(host.received[0].arrival.length, 33U);
  EXPECT_EQ(run(), 2U);
}

TEST_F(ReceivePathTest, AnEarlyMessageHasNoReceiveToGiveBack) {
  EXPECT_FALSE(send(1, pattern_bytes(5, 1), 0, false));
  EXPECT_FALSE(parts->path.abandon_receive());
}

TEST_F(ReceivePathTest, TheQuoteOfAMessageThatWaited) {
  Buffer memory(64);
  const Stag stag = host.add_region(memory);
  EXPECT_FALSE(send(1, {}));
  const Buffer u = test::read_request(1, {.size = 5, .source_stag = Stag{0xbad00}});
  EXPECT_FALSE(hears(u));
  // Something else comes last.
  EXPECT_FALSE(
      hears(tagged({.stag = stag, .to = test::address_of(memory).value()}, pattern_bytes(8, 1))));
  host.post_receive(1, {});
  const auto moved = parts->path.receives_posted();
  ASSERT_FALSE(moved.ok());
  EXPECT_EQ(moved.error(), term::kProtectionInvalidStag);
  const auto q = parts->path.quote_waiting();
  EXPECT_EQ(q.segment->control.opcode, Opcode::read_request);
  EXPECT_EQ(test::to_hex(q.request), test::to_hex(Bytes{u}.subspan(18)));
}

}  // namespace
}  // namespace weft::rdmap
