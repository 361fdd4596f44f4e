#include "verbs/address_handle.h"

#include "tests/unit/verbs/fixture.h"

namespace weft::verbs {
namespace {

class AddressHandleTest : public VerbsTest {
 protected:
  AddressHandleTest() : here(adapter(), device_with(Gid::from_ipv4(0xc0000201))) {}
  static device::Device device_with(const Gid& gid, uint32_t mtu = 1500) {
    device::Device d;
    d.gids.push_back({.gid = gid, .interface = "eth0", .ifindex = 2, .link_mtu = mtu});
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

// An adapter refuses what is longer than its MTU, also where the link has room for more.
TEST_F(AddressHandleTest, AMessageIsNoLongerThanTheMtuOfItsWay) {
  const Gid near_v4 = Gid::from_ipv4(0xc0000201);
  const Gid near_v6{.raw = {0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}};
  const Gid far_v6{.raw = {0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2}};
  const struct {
    uint32_t link;
    size_t v4, v6;
  } ways[] = {{1500, 1024, 1024}, {2108, 2048, 1024}, {2128, 2048, 2048}, {65536, 4096, 4096}};
  constexpr size_t kHeader = 32;
  for (const auto& way : ways) {
    const Context v4{adapter(), device_with(near_v4, way.link)};
    const Context v6{adapter(), device_with(near_v6, way.link)};
    const auto to_v4 = resolve(v4, {.global = true, .dgid = Gid::from_ipv4(0xc0000202)});
    const auto to_v6 = resolve(v6, {.global = true, .dgid = far_v6});
    const auto to_group = resolve(v4, {.global = true, .dgid = Gid::from_ipv4(0xefc00001)});
    ASSERT_TRUE(to_v4 && to_v6 && to_group);
    EXPECT_EQ(to_v4->room, kHeader + way.v4) << way.link;
    EXPECT_EQ(to_v6->room, kHeader + way.v6) << way.link;
    EXPECT_EQ(to_group->room, kHeader + way.v4) << way.link;
  }
}

TEST_F(AddressHandleTest, KnowsWhetherItLeadsFromOneFamilyToAnother) {
  const Gid v6{.raw = {0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2}};
  EXPECT_TRUE(resolved(0, Gid::from_ipv4(0xc0000202))->of_one_family());
  EXPECT_FALSE(resolved(0, v6)->of_one_family());
  // A group of InfiniBand's is one of either.
  const Gid group{.raw = {0xff, 0x15, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9}};
  EXPECT_TRUE(resolved(0, group)->of_one_family());
}

}  // namespace
}  // namespace weft::verbs
