#include "wdp/demux.h"

#include <gtest/gtest.h>

#include <set>

#include "base/random.h"
#include "tests/unit/wdp/wdp_socket_fixture.h"

namespace weft::wdp {
namespace {

struct DemuxTest : ::testing::Test {
  Result<UcConnection*, WdpDrop> find(SessionToken token, const Endpoint& from, uint8_t didx = 9) {
    return demux.find(
        wire::WdpCommon{.wdp_class = wire::WdpClass::uc, .didx = didx, .token = token}, from);
  }
  void expect_drop(WdpDrop why, const Result<UcConnection*, WdpDrop>& found) {
    ASSERT_FALSE(found.ok());
    EXPECT_EQ(found.error(), why);
  }

  Time now = Time::from_ns(1'000'000'000);
  WdpNode node{kA, 1, now};
  UcConnection& one = node.add_peer().connection;
  UcConnection& other = node.add_peer().connection;
  Demux demux;
};

TEST_F(DemuxTest, ASessionIsFoundByItsTokenFromItsAddressWithItsIndex) {
  demux.add(SessionToken{7}, {.connection = &one, .from = kB, .index = 9});
  demux.add(SessionToken{8}, {.connection = &other, .from = kB, .index = 9});
  EXPECT_EQ(*find(SessionToken{7}, kB), &one);
  EXPECT_EQ(*find(SessionToken{8}, kB), &other);
  EXPECT_EQ(*find(SessionToken{7}, kB), &one) << "the last one is remembered, and is another";
  expect_drop(WdpDrop::unknown_token, find(SessionToken{9}, kB));
  expect_drop(WdpDrop::wrong_address, find(SessionToken{7}, kStranger));
  expect_drop(WdpDrop::wrong_address, find(SessionToken{7}, {kB.address, 1}));
  expect_drop(WdpDrop::wrong_index, find(SessionToken{7}, kB, 8));
  expect_drop(WdpDrop::wrong_index, find(SessionToken{7}, kB, 0));
}

TEST_F(DemuxTest, WhatIsZeroMayBeAny) {
  demux.add(SessionToken{7}, {.connection = &one, .from = {kB.address, 0}, .index = 9});
  EXPECT_TRUE(find(SessionToken{7}, {kB.address, 1}).ok());
  expect_drop(WdpDrop::wrong_address, find(SessionToken{7}, kStranger));
  demux.add(SessionToken{8}, {.connection = &one, .from = {}, .index = 9, .or_zero = true});
  EXPECT_TRUE(find(SessionToken{8}, kStranger).ok());
  EXPECT_TRUE(find(SessionToken{8}, kStranger, 0).ok()) << "it was accepted by a listener";
  expect_drop(WdpDrop::wrong_index, find(SessionToken{8}, kStranger, 8));
}

TEST_F(DemuxTest, ASessionThatIsGoneIsNotFound) {
  demux.add(SessionToken{7}, {.connection = &one, .from = kB, .index = 9});
  ASSERT_TRUE(find(SessionToken{7}, kB).ok());
  demux.remove(SessionToken{7}, now);
  expect_drop(WdpDrop::unknown_token, find(SessionToken{7}, kB));
}

// Draws 0, a token in use and one that rests before a good one.
TEST_F(DemuxTest, AFreshTokenIsNobodysYet) {
  struct Drawn final : Random {
    uint64_t next() override { return values.at(at++); }
    std::vector<uint64_t> values;
    size_t at = 0;
  } random;
  demux.add(SessionToken{7}, {.connection = &one, .from = kB, .index = 9});
  demux.add(SessionToken{8}, {.connection = &one, .from = kB, .index = 9});
  demux.remove(SessionToken{8}, now);
  random.values = {0, 7, 8, 5, 8};
  EXPECT_EQ(demux.fresh_token(random, now + kTimeWait - 1ns), SessionToken{5});
  EXPECT_EQ(demux.fresh_token(random, now + kTimeWait), SessionToken{8}) << "it has rested";
}

// One that never was does not rest.
TEST_F(DemuxTest, ATokenThatWasNotInUseDoesNotRest) {
  struct Eight final : Random {
    uint64_t next() override { return 8; }
  } random;
  demux.remove(SessionToken{8}, now);
  EXPECT_EQ(demux.fresh_token(random, now), SessionToken{8});
}

TEST_F(DemuxTest, RequestsAreHalfOpenUntilTheyAreEstablished) {
  const RequestKey first{kB, SessionToken{1}, Xid{1}};
  const RequestKey second{kB, SessionToken{1}, Xid{2}};
  demux.add(first, {.connection = &one});
  demux.add(second, {.connection = &other});
  EXPECT_EQ(demux.half_open(), 2U);
  demux.established(first);
  EXPECT_EQ(demux.half_open(), 1U);
  ASSERT_NE(demux.find(first), nullptr) << "a late copy is to find it";
  EXPECT_EQ(demux.find(first)->connection, &one);
  demux.remove(first);
  EXPECT_EQ(demux.find(first), nullptr);
  demux.remove(second);
  EXPECT_EQ(demux.half_open(), 0U);
}

}  // namespace
}  // namespace weft::wdp
