#include "sdp/sockets/absent.h"

#include <gtest/gtest.h>

#include <vector>

namespace weft::sdp {
namespace {

using namespace std::chrono_literals;

StatName place(uint8_t last, uint16_t port) {
  StatName name{.port = port};
  name.address[15] = last;
  return name;
}

// Of a client that connects each second, by which of `times` it asks.
std::vector<int> asked(Absent& absent, Fallback why, int from, int times) {
  std::vector<int> seconds;
  for (int second = from; second < from + times; ++second) {
    const Absent::Clock::time_point now{std::chrono::seconds{second}};
    if (absent.knows(place(1, 80), now)) continue;
    seconds.push_back(second);
    absent.note(place(1, 80), why, now);
  }
  return seconds;
}

TEST(Absent, APlaceIsRememberedForAWhile) {
  Absent absent;
  const Absent::Clock::time_point now{1h};
  absent.note(place(1, 80), Fallback::refused, now);
  EXPECT_TRUE(absent.knows(place(1, 80), now));
  EXPECT_FALSE(absent.knows(place(1, 81), now)) << "another port";
  EXPECT_FALSE(absent.knows(place(2, 80), now)) << "another host";
  EXPECT_FALSE(absent.knows(place(1, 80), now + Absent::kRemembered));
}

TEST(Absent, WhatRefusesIsAskedEachSecond) {
  Absent absent;
  EXPECT_EQ(asked(absent, Fallback::refused, 100, 5), (std::vector<int>{100, 101, 102, 103, 104}));
}

TEST(Absent, WhatIsSilentIsAskedMoreAndMoreRarely) {
  Absent absent;
  EXPECT_EQ(asked(absent, Fallback::silent, 1000, 260),
            (std::vector<int>{1000, 1001, 1003, 1007, 1015, 1031, 1063, 1127, 1191, 1255}));
  Absent of_stranger;
  EXPECT_EQ(asked(of_stranger, Fallback::stranger, 1000, 10),
            (std::vector<int>{1000, 1001, 1003, 1007}));
}

TEST(Absent, ConnectionsThatAskAtTheSameTimeCountOnce) {
  Absent absent;
  const Absent::Clock::time_point now{1h};
  for (int i = 0; i < 8; ++i) absent.note(place(1, 80), Fallback::silent, now + i * 1ms);
  EXPECT_FALSE(absent.knows(place(1, 80), now + Absent::kRemembered));
}

TEST(Absent, WhatRefusesAgainIsAskedEachSecondAgain) {
  Absent absent;
  (void)asked(absent, Fallback::silent, 1000, 8);
  EXPECT_EQ(asked(absent, Fallback::refused, 1015, 3), (std::vector<int>{1015, 1016, 1017}));
}

TEST(Absent, WhatAnsweredOrWasSeenLongAgoIsANewPlace) {
  Absent absent;
  (void)asked(absent, Fallback::silent, 1000, 20);  // until 1031
  EXPECT_EQ(asked(absent, Fallback::silent, 1031 + 64, 3), (std::vector<int>{1095, 1096}));
  absent.forget(place(1, 80));
  EXPECT_EQ(asked(absent, Fallback::silent, 1097, 4), (std::vector<int>{1097, 1098, 1100}));
}

TEST(Absent, MemoryHasALimit) {
  Absent absent;
  const Absent::Clock::time_point now{1h};
  const auto note = [&](uint16_t port, Absent::Clock::time_point when) {
    absent.note(place(1, port), Fallback::refused, when);
  };
  for (uint16_t port = 1; port < 3000; ++port) note(port, now);
  EXPECT_FALSE(absent.knows(place(1, 2999), now));
  note(2999, now + Absent::kRemembered);
  EXPECT_TRUE(absent.knows(place(1, 2999), now + Absent::kRemembered)) << "the old ones are gone";
}

}  // namespace
}  // namespace weft::sdp
