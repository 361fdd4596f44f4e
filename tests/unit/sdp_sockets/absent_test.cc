#include "sdp/sockets/absent.h"

#include <gtest/gtest.h>

namespace weft::sdp {
namespace {

using namespace std::chrono_literals;

StatName place(uint8_t last, uint16_t port) {
  StatName name{.port = port};
  name.address[15] = last;
  return name;
}

TEST(Absent, APlaceIsRememberedForAWhile) {
  Absent absent;
  const Absent::Clock::time_point now{1h};
  absent.note(place(1, 80), now);
  EXPECT_TRUE(absent.knows(place(1, 80), now));
  EXPECT_FALSE(absent.knows(place(1, 81), now)) << "another port";
  EXPECT_FALSE(absent.knows(place(2, 80), now)) << "another host";
  EXPECT_FALSE(absent.knows(place(1, 80), now + Absent::kRemembered));
}

TEST(Absent, MemoryHasALimit) {
  Absent absent;
  const Absent::Clock::time_point now{1h};
  for (uint16_t port = 1; port < 3000; ++port) absent.note(place(1, port), now);
  EXPECT_FALSE(absent.knows(place(1, 2999), now));
  absent.note(place(1, 2999), now + Absent::kRemembered);
  EXPECT_TRUE(absent.knows(place(1, 2999), now + Absent::kRemembered)) << "the old ones are gone";
}

}  // namespace
}  // namespace weft::sdp
