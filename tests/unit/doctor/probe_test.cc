#include "doctor/probe.h"

#include <gtest/gtest.h>

namespace weft::doctor {
namespace {

const Probe kProbe{.kind = Probe::Kind::ping_reply,
                   .token = 0x0102030405060708,
                   .cookie = 0xf1f2f3f4f5f6f7f8,
                   .round = 0x11121314,
                   .id = 0x21222324,
                   .seen = Gid::from_ipv4(0xc0000201),
                   .seen_port = 0x3132};

TEST(Probe, ComesOutAsItWentIn) {
  for (const size_t size : {kProbeHeader, size_t{65}, size_t{1472}, kMostDatagram}) {
    const auto bytes = kProbe.encode(size);
    EXPECT_EQ(bytes.size(), size);
    const auto probe = Probe::parse(bytes);
    ASSERT_TRUE(probe) << size;
    EXPECT_EQ(probe->kind, kProbe.kind);
    EXPECT_EQ(probe->token, kProbe.token);
    EXPECT_EQ(probe->cookie, kProbe.cookie);
    EXPECT_EQ(probe->round, kProbe.round);
    EXPECT_EQ(probe->id, kProbe.id);
    EXPECT_EQ(probe->seen, kProbe.seen);
    EXPECT_EQ(probe->seen_port, kProbe.seen_port);
  }
}

TEST(Probe, IsNeverShorterThanItsHeader) {
  EXPECT_EQ(kProbe.encode(1).size(), kProbeHeader);
}

TEST(Probe, WhatIsCutOffOrDamagedIsNone) {
  const auto whole = kProbe.encode(200);
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(Probe::parse(std::span(whole).first(size))) << size;
  }
  // Bytes that say what it is, how long it is, and those that fill it up.
  for (const size_t at : {0U, 3U, 4U, 5U, 32U, 35U, 64U, 199U}) {
    auto damaged = whole;
    damaged[at] ^= std::byte{0x55};
    EXPECT_FALSE(Probe::parse(damaged)) << at;
  }
}

}  // namespace
}  // namespace weft::doctor
