// Terminates of both sides: what is said, and how the stream ends behind them.

#include "rdmap/stream.h"

#include <gtest/gtest.h>

#include "tests/unit/rdmap/stream_fixture.h"

namespace weft::rdmap {
namespace {

TEST(Stream, ATerminateOfOurs) {
  ScriptPeer p;
  Buffer data = pattern_bytes(10, 1);
  post_send(p, data);
  p.says();
  p.hears(tagged({.stag = Stag{0xbad}}, pattern_bytes(8, 1)));
  ASSERT_TRUE(p.host.end);
  EXPECT_EQ(p.host.end->kind, Kind::protocol_error);
  EXPECT_EQ(p.host.end->error, term::kTaggedInvalidStag);
  EXPECT_EQ(p.stream.wish(), Wish::none) << "the Terminate goes out first";
  EXPECT_EQ(names(p.says()), "Delivered, Terminate");
  EXPECT_EQ(names(p.says()), "");
  EXPECT_EQ(p.stream.wish(), Wish::shutdown_write);
  p.stream.write_side_shut(p.now);
  EXPECT_EQ(p.stream.wish(), Wish::none) << "what still comes is drained (spec/errors 4)";
  EXPECT_TRUE(p.stream.wants_bytes());
  p.hears_bytes(pattern_bytes(1000, 3));
  EXPECT_EQ(p.stream.wish(), Wish::none);
  p.stream.peer_closed(p.now);
  EXPECT_EQ(p.stream.wish(), Wish::close);
}

TEST(Stream, ATerminateDoesNotWaitLongerThanASecondForTheFin) {
  ScriptPeer p;
  p.hears(tagged({.stag = Stag{0xbad}}, pattern_bytes(8, 1)));
  p.says();
  p.stream.write_side_shut(p.now);
  p.later(999ms);
  EXPECT_EQ(p.stream.wish(), Wish::none);
  p.later(1ms);
  EXPECT_EQ(p.stream.wish(), Wish::close);
}

// spec/errors 4: if it cannot finish within 1 s, RST.
TEST(Stream, ATerminateThatDoesNotGetOutEndsInAReset) {
  ScriptPeer unsent;
  unsent.hears(tagged({.stag = Stag{0xbad}}, pattern_bytes(8, 1)));
  unsent.later(1s);
  EXPECT_EQ(unsent.stream.wish(), Wish::reset);

  // It is with the driver, and the socket takes nothing.
  ScriptPeer stuck;
  stuck.hears(tagged({.stag = Stag{0xbad}}, pattern_bytes(8, 1)));
  stuck.says();
  stuck.later(1s);
  EXPECT_EQ(stuck.stream.wish(), Wish::reset);
}

TEST(Stream, ATerminateOfThePeersIsNotAnswered) {
  ScriptPeer p;
  Buffer data = pattern_bytes(10, 1);
  post_send(p, data);
  p.says();
  p.hears(test::terminate({.error = term::kUntaggedNoBuffer}));
  EXPECT_EQ(p.host.end->kind, Kind::terminated);
  ASSERT_EQ(p.host.sent.size(), 1U);
  EXPECT_EQ(p.host.sent[0].status, work::Status::rnr_retry_exceeded);
  EXPECT_EQ(names(p.says()), "");
  EXPECT_EQ(p.stream.wish(), Wish::shutdown_write);
}

TEST(Stream, WhatStandsBehindATerminateIsNotDone) {
  ScriptPeer p;
  Buffer memory(64);
  const Buffer before = memory;
  const Stag stag = p.host.add_region(memory);
  p.hears({test::terminate({.error = term::kMpaCrc}),
           tagged({.stag = stag, .to = test::address_of(memory).value()}, pattern_bytes(8, 1))});
  EXPECT_EQ(memory, before);
  EXPECT_EQ(p.host.end->kind, Kind::terminated);
  EXPECT_EQ(p.host.end->error, term::kMpaCrc);
  EXPECT_EQ(names(p.says()), "");
}

// spec/errors 3: a Terminate that is wrong itself is not answered either.
TEST(Stream, AWrongTerminateEndsItQuietly) {
  const Buffer good = test::terminate({.error = term::kMpaCrc});
  Buffer wrong_queue = good;
  wrong_queue[9] = std::byte{0};
  Buffer wrong_msn = good;
  wrong_msn[13] = std::byte{2};
  Buffer wrong_offset = good;
  wrong_offset[17] = std::byte{4};
  Buffer not_last = good;
  not_last[0] = std::byte{0x01};
  Buffer too_short{good.begin(), good.begin() + 20};
  Buffer too_long = good;
  too_long.resize(18 + 77);
  for (const Buffer& u : {wrong_queue, wrong_msn, wrong_offset, not_last, too_short, too_long}) {
    ScriptPeer p;
    p.hears(u);
    ASSERT_TRUE(p.host.end);
    EXPECT_EQ(p.host.end->kind, Kind::lost);
    EXPECT_EQ(names(p.says()), "");
    EXPECT_EQ(p.stream.wish(), Wish::close);
  }
}

// The count of what was delivered decides over completions, so a wrong one ends the stream. A
// broken request behind it in the same piece of bytes must not get mixed up with it.
TEST(Stream, ADeliveredBeyondWhatWasSent) {
  ScriptPeer p;
  Buffer request = test::read_request(1, {.size = 5});
  request.resize(request.size() + 1000, std::byte{0x5a});
  p.hears({delivered(1), request});
  EXPECT_EQ(p.host.end->error, term::kOperationCatastrophicStream);
  const auto t = terminate_in(p.says());
  EXPECT_EQ(t.error, term::kOperationCatastrophicStream);
  EXPECT_EQ(t.ddp_header_size, 14U) << "the Delivered is quoted";
  EXPECT_EQ(t.rdmap_header_size, 0U);
}

}  // namespace
}  // namespace weft::rdmap
