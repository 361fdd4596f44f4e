#include "port/udp_tuning.h"

#include <gtest/gtest.h>

namespace weft::port {
namespace {

// --- UDP_GRO

// Each comes, and nothing is behind it. Returns how often the switch was turned.
int come_alone(GroSwitch& g, int datagrams) {
  int turned = 0;
  for (int i = 0; i < datagrams; ++i) {
    turned += g.came(false) ? 1 : 0;
    turned += g.empty() ? 1 : 0;
  }
  return turned;
}

TEST(GroSwitch, GoesOffWhen256HaveComeAlone) {
  GroSwitch g;
  EXPECT_TRUE(g.wanted());
  EXPECT_EQ(come_alone(g, 255), 0);
  EXPECT_TRUE(g.wanted());
  EXPECT_FALSE(g.came(false));
  EXPECT_TRUE(g.empty()) << "the 256th";
  EXPECT_FALSE(g.wanted());
  EXPECT_FALSE(g.empty()) << "once";
  EXPECT_EQ(come_alone(g, 1000), 0);
  EXPECT_FALSE(g.wanted());
}

TEST(GroSwitch, ATrainOrARowBeginsTheCountAnew) {
  GroSwitch trains;
  EXPECT_EQ(come_alone(trains, 255), 0);
  EXPECT_FALSE(trains.came(true)) << "it is on";
  EXPECT_FALSE(trains.empty());
  EXPECT_EQ(come_alone(trains, 255), 0);
  EXPECT_EQ(come_alone(trains, 1), 1);

  GroSwitch rows;
  EXPECT_EQ(come_alone(rows, 255), 0);
  for (int i = 0; i < 4; ++i) EXPECT_FALSE(rows.came(false));
  EXPECT_FALSE(rows.empty());
  EXPECT_EQ(come_alone(rows, 255), 0);
  EXPECT_EQ(come_alone(rows, 1), 1);
}

TEST(GroSwitch, GoesOnWithFourInARow) {
  GroSwitch g;
  ASSERT_EQ(come_alone(g, 256), 1);
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < 3; ++i) EXPECT_FALSE(g.came(false));
    EXPECT_FALSE(g.empty()) << "three are none";
  }
  EXPECT_FALSE(g.wanted());
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(g.came(false));
  EXPECT_TRUE(g.came(false));
  EXPECT_TRUE(g.wanted());
  EXPECT_FALSE(g.came(false)) << "once";
  EXPECT_FALSE(g.empty());
  EXPECT_EQ(come_alone(g, 255), 0);
  EXPECT_EQ(come_alone(g, 1), 1);
}

TEST(GroSwitch, GoesOnWithATrain) {
  GroSwitch g;
  ASSERT_EQ(come_alone(g, 256), 1);
  EXPECT_TRUE(g.came(true));
  EXPECT_TRUE(g.wanted());
  EXPECT_FALSE(g.came(true));
}

TEST(GroSwitch, GoesOnWhereItWentOffTooEarly) {
  GroSwitch g;
  ASSERT_EQ(come_alone(g, 256), 1);
  g.not_empty();
  EXPECT_TRUE(g.wanted());
  EXPECT_EQ(come_alone(g, 255), 0);
  EXPECT_EQ(come_alone(g, 1), 1);
}

// --- IP_TTL

using Say = UsualTtl::Say;

// The same for `n` datagrams.
bool all_said(UsualTtl& t, uint8_t hops, int n, Say say) {
  bool all = true;
  for (int i = 0; i < n; ++i) all &= t.said(hops) == say;
  return all;
}

TEST(UsualTtl, TheKernelsOwnNeedsNoWord) {
  UsualTtl t;
  EXPECT_TRUE(all_said(t, UsualTtl::kKernels, 100, Say::nothing));
}

TEST(UsualTtl, The16thInARowMakesItTheSocketsOwn) {
  UsualTtl t;
  EXPECT_TRUE(all_said(t, 5, 15, Say::with_datagram));
  EXPECT_EQ(t.said(5), Say::to_socket);
  EXPECT_TRUE(all_said(t, 5, 100, Say::nothing));
  EXPECT_TRUE(all_said(t, 6, 15, Say::with_datagram));
  EXPECT_EQ(t.said(6), Say::to_socket);
  EXPECT_TRUE(all_said(t, 6, 100, Say::nothing));
}

TEST(UsualTtl, ARowThatIsInterruptedCountsAnew) {
  UsualTtl t;
  EXPECT_TRUE(all_said(t, 5, 15, Say::with_datagram));
  EXPECT_EQ(t.said(6), Say::with_datagram);
  EXPECT_TRUE(all_said(t, 5, 15, Say::with_datagram));
  EXPECT_EQ(t.said(UsualTtl::kKernels), Say::nothing) << "the usual one";
  EXPECT_TRUE(all_said(t, 5, 15, Say::with_datagram));
  EXPECT_EQ(t.said(5), Say::to_socket);
}

TEST(UsualTtl, TwoByTurnsAreSaidEachTime) {
  UsualTtl t;
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(t.said(5), Say::with_datagram);
    EXPECT_EQ(t.said(6), Say::with_datagram);
  }
}

// A datagram has no word for it, so the socket has to be told at once.
TEST(UsualTtl, TheKernelsOwnComesBackAtOnce) {
  UsualTtl t;
  ASSERT_TRUE(all_said(t, 5, 15, Say::with_datagram));
  ASSERT_EQ(t.said(5), Say::to_socket);
  EXPECT_EQ(t.said(UsualTtl::kKernels), Say::to_socket);
  EXPECT_TRUE(all_said(t, UsualTtl::kKernels, 100, Say::nothing));
  EXPECT_TRUE(all_said(t, 5, 15, Say::with_datagram)) << "and is the usual one again";
}

// --- the source address

const Gid kOne = Gid::from_ipv4(0xc0000201);
const Gid kOther = Gid::from_ipv4(0xc0000202);

// How many of `n` datagrams were worth a question; each is answered with `taken`.
int asked(OwnSource& s, const Gid& own, int n, bool taken) {
  int times = 0;
  for (int i = 0; i < n; ++i) {
    if (!s.to_ask(own)) continue;
    ++times;
    s.answered(taken);
  }
  return times;
}

TEST(OwnSource, IsAskedForBehind16Datagrams) {
  OwnSource s;
  EXPECT_EQ(asked(s, kOne, 16, true), 0);
  EXPECT_FALSE(s.taken());
  EXPECT_EQ(asked(s, kOne, 1, true), 1);
  EXPECT_TRUE(s.taken());
}

TEST(OwnSource, IsAskedForAgainAfter4096) {
  OwnSource s;
  EXPECT_EQ(asked(s, kOne, 17, true), 1);
  EXPECT_EQ(asked(s, kOne, 4095, false), 0);
  EXPECT_TRUE(s.taken());
  EXPECT_EQ(asked(s, kOne, 1, false), 1);
  EXPECT_FALSE(s.taken()) << "addresses come and go";
  EXPECT_EQ(asked(s, kOne, 4096, true), 1);
  EXPECT_TRUE(s.taken());
}

TEST(OwnSource, AnotherAddressIsAnotherQuestion) {
  OwnSource s;
  ASSERT_EQ(asked(s, kOne, 17, true), 1);
  EXPECT_EQ(asked(s, kOther, 16, false), 0);
  EXPECT_FALSE(s.taken()) << "what is known of the first says nothing of it";
  EXPECT_EQ(asked(s, kOther, 1, true), 1);
  EXPECT_TRUE(s.taken());
}

TEST(OwnSource, TwoAddressesByTurnsAreNotAskedFor) {
  OwnSource s;
  for (int i = 0; i < 10'000; ++i) {
    EXPECT_EQ(asked(s, kOne, 1, true), 0);
    EXPECT_EQ(asked(s, kOther, 1, true), 0);
    ASSERT_FALSE(s.taken());
  }
}

}  // namespace
}  // namespace weft::port
