// Marks of routers (spec/wdp-rd 5.6).

#include <gtest/gtest.h>

#include <utility>

#include "tests/unit/wdp/rd_channel_fixture.h"
#include "wdp/ecn.h"
#include "wire/grh.h"

namespace weft::wdp {
namespace {

using test::Buffer;
using RdMarksTest = RdChannelTest;

// Its traffic class as program and channel have it.
TEST_F(RdMarksTest, WhatSaysEct) {
  std::vector<uint8_t> seen;
  router = [&](bool, uint8_t traffic_class) {
    seen.push_back(traffic_class);
    return std::optional{traffic_class};
  };
  q.post_receives(2);
  p.send(kB, 5, text);
  talk();
  later(1ms);
  EXPECT_EQ(seen, (std::vector<uint8_t>{0, 0, 0, kEct0, 0}))
      << "REQ, REP, RTU and an RDACK alone do not; data do";
}

TEST_F(RdMarksTest, WithoutTheOptionNothingSaysEct) {
  a.ecn = b.ecn = false;
  bool said = false;
  router = [&](bool, uint8_t traffic_class) {
    said |= traffic_class != 0;
    return std::optional{traffic_class};
  };
  stand();
  EXPECT_FALSE(said);
}

// RFC 9002 7.1: a mark is treated as a loss is, and nothing is sent again.
TEST_F(RdMarksTest, AMarkMakesTheWindowSmaller) {
  stand();
  q.post_receives(40);
  const size_t before = of_a().sender().congestion().window();
  bool marks = true;
  router = [&](bool from_a, uint8_t traffic_class) {
    const bool mark = from_a && traffic_class == kEct0 && std::exchange(marks, false);
    return std::optional{mark ? kCe : traffic_class};
  };
  p.send(kB, 5, text);
  talk();
  EXPECT_EQ(p.host.sent.size(), 1U) << "told at once";
  const size_t after = of_a().sender().congestion().window();
  EXPECT_EQ(after, before * 7 / 10);
  EXPECT_EQ(of_a().sender().counters().marked, 1U);
  EXPECT_EQ(of_b().receiver()->counters().marked, 1U);
  // The same sum again is no news.
  for (int i = 0; i < 4; ++i) p.send(kB, 5, text);
  talk();
  later(1ms);
  EXPECT_EQ(p.host.sent.size(), 5U);
  EXPECT_GE(of_a().sender().congestion().window(), after);
  EXPECT_EQ(of_a().sender().counters().marked, 1U);
  EXPECT_EQ(of_a().sender().counters().repeated, 0U);
  EXPECT_EQ(of_a().sender().counters().lost, 0U);
}

TEST_F(RdMarksTest, MarksOfOneRoundTripCountOnce) {
  stand();
  q.post_receives(40);
  const size_t before = of_a().sender().congestion().window();
  router = [](bool from_a, uint8_t traffic_class) {
    return std::optional{from_a && traffic_class == kEct0 ? kCe : traffic_class};
  };
  for (int i = 0; i < 12; ++i) p.send(kB, 5, text);
  talk();
  later(1ms);
  EXPECT_EQ(p.host.sent.size(), 12U);
  EXPECT_EQ(of_a().sender().counters().marked, 12U);
  EXPECT_EQ(of_a().sender().congestion().window(), before * 7 / 10);
}

// What the program of a UD queue pair sees of the traffic class.
TEST_F(RdMarksTest, AProgramSeesNoMarks) {
  stand();
  q.post_receives(1);
  router = [](bool, uint8_t) { return std::optional<uint8_t>{0x20 | kCe}; };
  p.send(kB, 5, text);
  talk();
  ASSERT_EQ(q.received.size(), 1U);
  EXPECT_EQ(wire::Grh::parse(q.rooms.back().data()).traffic_class, 0x20);
}

// RFC 9000 13.4.2: all that says ECT is dropped on the way there.
TEST_F(RdMarksTest, APathThatCarriesNoEct) {
  router = [](bool from_a, uint8_t traffic_class) -> std::optional<uint8_t> {
    if (from_a && traffic_class != 0) return {};
    return traffic_class;
  };
  q.post_receives(20);
  for (int i = 0; i < 20; ++i) p.send(kB, 5, text);
  talk();
  EXPECT_EQ(q.received.size(), 0U);
  later(5s);
  EXPECT_EQ(q.received.size(), 20U);
  EXPECT_EQ(p.host.sent.size(), 20U);
  EXPECT_FALSE(of_a().sender().says_ect());
  EXPECT_TRUE(of_b().sender().says_ect()) << "the other way was not tried";
}

// The other way carries acknowledgements alone, which nobody would miss.
TEST_F(RdMarksTest, APathBackThatCarriesNoEct) {
  router = [](bool from_a, uint8_t traffic_class) -> std::optional<uint8_t> {
    if (!from_a && traffic_class != 0) return {};
    return traffic_class;
  };
  q.post_receives(20);
  for (int i = 0; i < 20; ++i) p.send(kB, 5, text);
  talk();
  later(1s);
  EXPECT_EQ(q.received.size(), 20U);
  EXPECT_EQ(p.host.sent.size(), 20U);
}

// More marks than datagrams are none.
TEST_F(RdMarksTest, ACountThatCannotBeIsIgnored) {
  stand();
  const size_t before = of_a().sender().congestion().window();
  p.send(kB, 5, text);
  (void)a.said(now);  // on its way for ever
  now = now + 1ms;
  wire::WdpAck ack{.token = of_a().token(),
                   .cum = of_a().sender().next_csn(),
                   .timestamp = 1'000'000'000,
                   .window = 1000,
                   .ce = 1U << 30};
  Buffer bytes(ack.size());
  ack.encode(bytes.data());
  a.hear(bytes, b.address, now);
  EXPECT_EQ(p.host.sent.size(), 1U) << "the rest of it counts";
  EXPECT_EQ(of_a().sender().counters().marked, 0U);
  EXPECT_GE(of_a().sender().congestion().window(), before);
}

// One that has carried it once goes on, whatever is lost later.
TEST_F(RdMarksTest, LossesDoNotEndEct) {
  stand();
  q.post_receives(20);
  int left = 15;
  const auto lose = [&](bool from_a, const Buffer& d) {
    return !(from_a && is_data(d) && left-- > 0);
  };
  for (int i = 0; i < 20; ++i) p.send(kB, 5, text);
  talk(lose);
  later(5s, lose);
  EXPECT_EQ(q.received.size(), 20U);
  EXPECT_GE(of_a().sender().counters().lost, 10U);
  EXPECT_TRUE(of_a().sender().says_ect());
}

}  // namespace
}  // namespace weft::wdp
