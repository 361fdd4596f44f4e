// The bytes of a connection over a channel (spec/wdp-rd 7), two hosts against each other without a
// network.

#include "wdp/rd_stream.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <vector>

#include "tests/support/fault_catcher.h"
#include "tests/support/want_of_memory.h"
#include "tests/unit/wdp/rd_stream_fixture.h"
#include "wire/wdp_bundle.h"

namespace weft::wdp {
namespace {

using test::Buffer;
using test::pattern_bytes;
using test::RdNode;
using test::WantOfMemory;
using wire::WdpDrop;

using End = RdStreamEnd;

TEST_F(RdStreamTest, WhatIsSentIsReadInBothDirections) {
  open();
  const Buffer there = pattern_bytes(100'000, 1);
  EXPECT_EQ(p.send(there), there.size());
  talk();
  EXPECT_GT(q.changes, 0);
  EXPECT_EQ(q.read(), there);
  const Buffer back = pattern_bytes(10, 2);
  EXPECT_EQ(q.send(back), back.size());
  later(1ms);
  EXPECT_EQ(p.read(), back);
}

TEST_F(RdStreamTest, WhatIsLostComesAgain) {
  open();
  const Buffer bytes = pattern_bytes(300'000, 3);
  size_t sent = 0;
  Buffer got;
  int count = 0;
  const auto lossy = [&](bool, const Buffer&) { return ++count % 5 != 0; };
  for (int i = 0; i < 1000 && got.size() < bytes.size(); ++i) {
    if (sent < bytes.size())
      sent += p.send({bytes.begin() + static_cast<ptrdiff_t>(sent), bytes.end()});
    later(5ms, lossy);
    const Buffer more = q.read();
    got.insert(got.end(), more.begin(), more.end());
  }
  EXPECT_EQ(got, bytes);
}

// What an owner takes as it comes waits nowhere, and counts as read.
TEST_F(RdStreamTest, WhatIsTakenAtOnceMakesRoomForMore) {
  open();
  q.takes_at_once = true;
  const Buffer much = pattern_bytes(3 * RdStream::kWindow, 11);
  size_t sent = 0;
  for (int i = 0; i < 50 && sent < much.size(); ++i) {
    sent += p.send({much.begin() + static_cast<ptrdiff_t>(sent), much.end()});
    later(1ms);
    EXPECT_EQ(q.stream.readable(), 0U);
  }
  EXPECT_EQ(sent, much.size());
  EXPECT_EQ(q.taken, much);
}

// It costs no datagram of its own: the RDACK of what was taken goes with it.
TEST_F(RdStreamTest, WhatIsTakenIsSaidBesideTheRdack) {
  open();
  q.takes_at_once = true;
  const Buffer quarter = pattern_bytes(RdStream::kWindow / 4, 12);
  ASSERT_EQ(p.send(quarter), quarter.size());
  std::vector<Buffer> said;
  later(1ms, [&](bool from_a, const Buffer& datagram) {
    if (!from_a) said.push_back(datagram);
    return true;
  });
  ASSERT_EQ(q.taken, quarter);
  const auto is_both = [](const Buffer& datagram) {
    const auto common = *wire::WdpCommon::parse(datagram);
    std::vector<uint32_t> words;
    std::optional<wire::WdpAck> ack;
    const auto note = [&](const wire::WdpData& d, Bytes) { words.push_back(d.imm_or_read); };
    return wire::WdpBundle::read(common, datagram, note, ack).ok() && ack &&
           words == std::vector{static_cast<uint32_t>(wire::RdStreamWord::taken)};
  };
  EXPECT_EQ(std::count_if(said.begin(), said.end(), is_both), 1);
}

// What it does not take waits, and so does all that comes behind it.
TEST_F(RdStreamTest, NothingIsTakenBeforeWhatWaits) {
  open();
  const Buffer bytes = pattern_bytes(4 * kMost, 12);
  const auto quarter = [&](size_t i) {
    return Buffer(bytes.begin() + static_cast<ptrdiff_t>(i * kMost),
                  bytes.begin() + static_cast<ptrdiff_t>((i + 1) * kMost));
  };
  const auto come = [&](size_t i) {
    EXPECT_EQ(p.send(quarter(i)), kMost);
    talk();
  };
  q.takes_at_once = true;
  come(0);
  EXPECT_EQ(q.taken, quarter(0));
  q.takes_at_once = false;
  come(1);
  q.takes_at_once = true;
  come(2);
  EXPECT_EQ(q.taken.size(), kMost) << "the second quarter is not read";
  Buffer read = q.read();
  EXPECT_EQ(read, Buffer(bytes.begin() + kMost, bytes.begin() + 3 * kMost));
  come(3);
  EXPECT_EQ(Buffer(q.taken.begin() + kMost, q.taken.end()), quarter(3));
}

// What comes before memory that is gone is sent, and its owner is told to ask for the rest.
TEST_F(RdStreamTest, MemoryThatIsGoneEndsWhatIsSentBeforeIt) {
  const test::FaultCatcher catcher;
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* const memory =
      mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  ASSERT_EQ(mprotect(static_cast<std::byte*>(memory) + page, page, PROT_NONE), 0);
  open();
  const int before = p.changes;
  IoVec all{memory, 2 * page};
  const auto first = p.stream.send({&all, 1});
  EXPECT_EQ(first.bytes, page / kMost * kMost);
  EXPECT_TRUE(first.unreachable);
  EXPECT_GT(p.changes, before);
  all = {static_cast<std::byte*>(memory) + first.bytes, 2 * page - first.bytes};
  const auto rest = p.stream.send({&all, 1});
  EXPECT_EQ(rest.bytes, 0U);
  EXPECT_TRUE(rest.unreachable);
  talk();
  EXPECT_EQ(q.read().size(), first.bytes) << "nothing of the datagram that could not be filled";
  munmap(memory, 2 * page);
}

// A reader that takes nothing holds up its own peer, and no other connection of the channel.
TEST_F(RdStreamTest, WhoReadsNothingHoldsUpNobodyElse) {
  End p2{a, 4, 0x3333};
  End q2{b, 6, 0x4444};
  open();
  p2.begin(q2);
  q2.begin(p2);
  talk();  // it asks the channel's peer
  ASSERT_TRUE(p2.stream.has_channel());
  const Buffer much = pattern_bytes(3 * RdStream::kWindow, 4);
  size_t sent = 0;
  for (int i = 0; i < 50; ++i) {
    sent += p.send({much.begin() + static_cast<ptrdiff_t>(sent), much.end()});
    later(10ms);
  }
  EXPECT_LE(sent, RdStream::kWindow);
  EXPECT_GT(sent, RdStream::kWindow - kMost);
  const Buffer little = pattern_bytes(1000, 5);
  EXPECT_EQ(p2.send(little), little.size());
  talk();
  EXPECT_EQ(q2.read(), little);
  // It reads, and the sender hears of room.
  const int before = p.changes;
  EXPECT_EQ(q.read().size(), sent);
  later(1ms);
  EXPECT_GT(p.changes, before);
  EXPECT_GT(p.send({much.begin() + static_cast<ptrdiff_t>(sent), much.end()}),
            RdStream::kWindow / 2);
}

TEST_F(RdStreamTest, TheEndComesBehindAllBytes) {
  open();
  const Buffer bytes = pattern_bytes(5000, 6);
  EXPECT_EQ(p.send(bytes), bytes.size());
  p.stream.end();
  talk();
  EXPECT_FALSE(q.stream.peer_ended()) << "before they are read";
  EXPECT_EQ(q.read(), bytes);
  EXPECT_TRUE(q.stream.peer_ended());
  EXPECT_EQ(q.stream.error(), 0);
  // The other direction lives.
  EXPECT_EQ(q.send(bytes), bytes.size());
  talk();
  EXPECT_EQ(p.read(), bytes);
}

TEST_F(RdStreamTest, WhoLeavesBeforeTheEndSaysSo) {
  open();
  EXPECT_EQ(p.send(pattern_bytes(10, 7)), 10U);
  p.stream.leave(true);
  talk();
  EXPECT_EQ(q.stream.error(), ECONNRESET);
  // What is said to one that has left is nobody's.
  q.stream.leave(true);
  talk();
  EXPECT_EQ(drops(a, WdpDrop::no_such_qp), 0U) << "q knows that p has left";
}

// Messages of another connection, and of somebody who knows its session but is not the peer.
// It is asked again, and the peer hears of the end.
TEST(RdStreamMemory, WhoFindsNoneToLeaveWithLeavesLater) {
  struct Run final : RdStreamTest {
    void TestBody() override {}
  };
  bool failed = true;
  for (uint64_t n = 0; failed; ++n) {
    Run t;
    t.open();
    EXPECT_EQ(t.p.send(pattern_bytes(10, 1)), 10U);
    t.later(1s);
    WantOfMemory::after(n);
    (void)WantOfMemory::during([&] { t.p.stream.leave(true); });
    failed = WantOfMemory::came();
    WantOfMemory::end();
    t.p.stream.leave(true);
    t.later(1s);
    EXPECT_EQ(t.q.stream.error(), ECONNRESET) << n;
    EXPECT_TRUE(n > 0 || failed) << "nothing was allocated";
  }
}

TEST_F(RdStreamTest, StrangersAreNotHeard) {
  End stranger{a, 7, 0x5555};
  End stale{a, 3, 0x1111};
  open();
  stranger.begin(q);
  talk();
  ASSERT_TRUE(stranger.stream.has_channel());
  EXPECT_EQ(stranger.send(pattern_bytes(10, 8)), 10U);
  talk();
  EXPECT_EQ(drops(b, WdpDrop::wrong_address), 1U);
  stale.stream.begin({.qpn = q.offer.qpn, .session = 0x9999}, p.stream.path(), kMost);
  talk();
  ASSERT_TRUE(stale.stream.has_channel());
  EXPECT_EQ(stale.send(pattern_bytes(10, 9)), 10U);
  talk();
  EXPECT_EQ(drops(b, WdpDrop::wrong_q_key), 1U);
  EXPECT_EQ(q.stream.readable(), 0U);
  EXPECT_EQ(q.stream.error(), 0);
}

// Indices of queue pairs come back, and the connection before may take a while to leave.
TEST_F(RdStreamTest, ALaterConnectionOfTheSameQueuePairStaysWhenTheFirstLeaves) {
  open();
  End caller{a, 7, 0x5555};
  End after{b, 5, 0x6666};
  q.stream.leave(false);
  caller.begin(after);
  after.begin(caller);
  talk();
  ASSERT_TRUE(caller.stream.has_channel());
  const Buffer bytes = pattern_bytes(5000, 12);
  EXPECT_EQ(caller.send(bytes), bytes.size());
  talk();
  EXPECT_EQ(after.read(), bytes);
}

// spec/wdp-rd 7.4: a connection at rest asks whether its peer is there.
// The first one waits yet for the peer's end, and its channel goes.
TEST_F(RdStreamTest, OneThatGaveItsIndexToALaterOneHearsOfTheEndOfItsChannel) {
  open();
  EXPECT_EQ(p.send(pattern_bytes(100, 1)), 100U);
  later(1s);  // nothing waits for an acknowledgement
  const End later_one{a, 3, 0x7777};
  a.links.front().channel.abort();
  EXPECT_EQ(p.stream.error(), ECONNRESET);
  EXPECT_EQ(later_one.stream.error(), 0) << "it had no channel yet";
  p.stream.leave(false);
}

TEST_F(RdStreamTest, APeerThatIsGoneIsNoticedAtRest) {
  open();
  EXPECT_EQ(p.send(pattern_bytes(10, 10)), 10U);
  later(1s);
  later(5min);
  EXPECT_EQ(p.stream.error(), 0)
      << "it is there, and the channel does not end for want of messages";
  EXPECT_EQ(q.stream.error(), 0);
  later(20s, [](bool from_a, const Buffer&) { return from_a; });
  EXPECT_NE(p.stream.error(), 0);
}

// A peer whose socket begins anew has no connection of before.
TEST_F(RdStreamTest, AChannelThatEndsEndsItsConnections) {
  open();
  EXPECT_EQ(p.send(pattern_bytes(10, 11)), 10U);
  talk();
  b.links.front().channel.abort();
  EXPECT_EQ(q.stream.error(), ECONNRESET);
}

// What is on its way at the end of a socket's life comes first.
TEST_F(RdStreamTest, AChannelThatClosesWaitsForWhatWasSent) {
  open();
  talk();
  const Buffer bytes = pattern_bytes(200'000, 12);
  EXPECT_EQ(p.send(bytes), bytes.size());
  p.stream.leave(false);
  int count = 0;
  a.links.front().channel.close(now);
  later(900ms, [&](bool, const Buffer&) { return ++count % 7 != 0; });
  EXPECT_EQ(q.read(), bytes);
  EXPECT_TRUE(q.stream.peer_ended());
}

}  // namespace
}  // namespace weft::wdp
