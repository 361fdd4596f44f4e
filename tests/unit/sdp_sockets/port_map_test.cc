#include "sdp/sockets/port_map.h"

#include <gtest/gtest.h>

#include <set>

namespace weft::sdp {
namespace {

// spec/sdp 3.3.
TEST(SdpPort, AsTheTableSays) {
  EXPECT_EQ(sdp_port(80), 61'080);
  EXPECT_EQ(sdp_port(2767), 63'767);
  EXPECT_EQ(sdp_port(2768), 32'768);
  EXPECT_EQ(sdp_port(5432), 35'432);
  EXPECT_EQ(sdp_port(30'999), 60'999);
  EXPECT_EQ(sdp_port(31'000), 63'768);
  EXPECT_EQ(sdp_port(32'767), 65'535);
  EXPECT_EQ(sdp_port(32'768), 2768);
  EXPECT_EQ(sdp_port(60'999), 30'999);
  EXPECT_FALSE(sdp_port(61'000));
  EXPECT_FALSE(sdp_port(65'535));
}

TEST(SdpPort, NoTwoServersMeet) {
  std::set<uint16_t> ports;
  for (uint32_t p = 0; p < 61'000; ++p) {
    EXPECT_TRUE(ports.insert(*sdp_port(static_cast<uint16_t>(p))).second) << p;
  }
}

}  // namespace
}  // namespace weft::sdp
