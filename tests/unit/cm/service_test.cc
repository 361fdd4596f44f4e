#include "cm/service.h"

#include "tests/unit/cm/ids.h"

namespace weft::cm {
namespace {

using ServiceTest = IdsTest;

TEST_F(ServiceTest, EachPortSpaceHasItsIds) {
  Id& connection = make(PortSpace::tcp);
  Id& datagrams = make(PortSpace::udp);
  Id& ipoib = make(PortSpace::ipoib);
  EXPECT_EQ(connection.join_multicast({}, nullptr), EINVAL);
  // Bound to nothing, but of a kind that joins groups.
  for (Id* id : {&datagrams, &ipoib}) {
    EXPECT_EQ(id->bind(port::Address::from_gid(Gid::from_ipv4(0x7f000001), 0)), 0);
    EXPECT_EQ(id->connect(nullptr, {}), EINVAL) << "before its address is resolved";
  }
  for (Id* id : {&connection, &datagrams, &ipoib}) id->destroy();
}

TEST_F(ServiceTest, TheAddressTowardsThisHostIsThatOfLoopback) {
  const Gid loopback = Gid::from_ipv4(0x7f000001);
  EXPECT_EQ(service().source_towards(port::Address::from_gid(loopback, 7174)).gid(), loopback);
  // The kernel connects to no broadcast address.
  EXPECT_FALSE(
      service().source_towards(port::Address::from_gid(Gid::from_ipv4(0xffffffff), 7174)).valid());
}

// Destroying an id waits for this, and would wait for ever.
TEST_F(ServiceTest, AnEventIsItsIdsUntilItIsAcknowledged) {
  Id& id = make(PortSpace::tcp);
  ASSERT_EQ(id.resolve_address({}, port::Address::from_gid(Gid::from_ipv4(0x7f000001), 1)), 0);
  Event* e = nullptr;
  ASSERT_EQ(channel->next(e), 0);
  EXPECT_EQ(e->id, &id);
  service().acknowledge(e);
  EXPECT_EQ(id.destroy(), 0);
}

TEST_F(ServiceTest, WhatIsNotSupportedIsSaidOnce) {
  testing::internal::CaptureStderr();
  Id* id = nullptr;
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(service().create_id(*channel, PortSpace::ib, id), EOPNOTSUPP);
  }
  service().say_unsupported("another thing");
  service().say_refusal("a_call", "its first reason");
  service().say_refusal("a_call", "its second reason");
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(id, nullptr);
  const size_t first = said.find("RDMA_PS_IB: not supported");
  EXPECT_NE(first, std::string::npos) << said;
  EXPECT_EQ(said.find("RDMA_PS_IB: not supported", first + 1), std::string::npos) << said;
  EXPECT_NE(said.find("another thing: not supported"), std::string::npos) << said;
  EXPECT_NE(said.find("a_call: its first reason"), std::string::npos) << said;
  EXPECT_EQ(said.find("its second reason"), std::string::npos) << "no warning" << said;
}

}  // namespace
}  // namespace weft::cm
