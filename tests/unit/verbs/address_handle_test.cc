#include "verbs/address_handle.h"

#include "tests/unit/verbs/fixture.h"

namespace weft::verbs {
namespace {

class AddressHandleTest : public VerbsTest {
 protected:
  AddressHandleTest() : here(adapter(), device_with(Gid::from_ipv4(0xc0000201))) {}
  static device::Device device_with(const Gid& gid) {
    device::Device d;
    d.gids.push_back({.gid = gid, .interface = "eth0", .ifindex = 2, .link_mtu = 1500});
    return d;
  }
  std::optional<AddressHandle> resolved(uint8_t static_rate, const Gid& to) const {
    return resolve(here, {.global = true, .dgid = to, .static_rate = static_rate});
  }
  Context here;
};

// InfiniBand's numbers (verbs.h, ibv_rate) as Gb/s, towards a host and to a group alike.
TEST_F(AddressHandleTest, StaticRatesAreThoseOfInfiniBand) {
  const std::pair<uint8_t, double> rates[] = {
      {0, 0},    {2, 2.5},  {3, 10},    {4, 30},   {5, 5},   {6, 20},   {7, 40},
      {8, 60},   {9, 80},   {10, 120},  {11, 14},  {12, 56}, {13, 112}, {14, 168},
      {15, 25},  {16, 100}, {17, 200},  {18, 300}, {19, 28}, {20, 50},  {21, 400},
      {22, 600}, {23, 800}, {24, 1200}, {1, 0},    {25, 0},  {255, 0},  // nobody's: as fast as can
                                                                        // be
  };
  for (const auto& [number, gbps] : rates) {
    for (const uint32_t to : {0xc0000202U, 0xefc00001U}) {
      const auto handle = resolved(number, Gid::from_ipv4(to));
      ASSERT_TRUE(handle);
      EXPECT_EQ(handle->path.rate, gbps) << int{number};
    }
  }
}

}  // namespace
}  // namespace weft::verbs
