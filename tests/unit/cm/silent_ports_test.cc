#include "cm/silent_ports.h"

#include <gtest/gtest.h>

namespace weft::cm {
namespace {

using namespace std::chrono_literals;

constexpr wdp::Endpoint port(uint32_t n) {
  return {.address = Gid::from_ipv4(0x0a000000U + n), .port = 40'000};
}
const Time kNow = Time::from_ns(1'000'000'000);

TEST(SilentPorts, AreKnownForAMinute) {
  SilentPorts ports;
  ports.add(port(1), kNow);
  EXPECT_TRUE(ports.has(port(1), kNow + 59s));
  EXPECT_FALSE(ports.has(port(1), kNow + 60s));
  EXPECT_FALSE(ports.has(port(2), kNow));
}

TEST(SilentPorts, OneThatIsSilentAgainIsKnownForAMinuteMore) {
  SilentPorts ports;
  ports.add(port(1), kNow);
  ports.add(port(1), kNow + 50s);
  EXPECT_TRUE(ports.has(port(1), kNow + 100s));
}

// Those that are over make room.
TEST(SilentPorts, AreThousandAndTwentyFourAtMost) {
  SilentPorts ports;
  for (uint32_t n = 0; n < 1024; ++n) ports.add(port(n), kNow);
  ports.add(port(5000), kNow + 1s);
  EXPECT_FALSE(ports.has(port(5000), kNow + 1s));
  EXPECT_TRUE(ports.has(port(1023), kNow + 1s));
  ports.add(port(5000), kNow + 60s);
  EXPECT_TRUE(ports.has(port(5000), kNow + 61s));
  EXPECT_FALSE(ports.has(port(1023), kNow + 61s));
}

}  // namespace
}  // namespace weft::cm
