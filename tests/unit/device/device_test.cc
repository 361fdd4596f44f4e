#include "device/device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weft::device {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kGuid = 0x0200112233445566;

LocalAddress ipv4(uint32_t address, uint32_t mtu = 1500) {
  return {.gid = Gid::from_ipv4(address), .interface = "eth0", .ifindex = 2, .link_mtu = mtu};
}
LocalAddress ipv6(uint32_t mtu = 1500) {
  LocalAddress a{.interface = "eth0", .ifindex = 2, .link_mtu = mtu};
  a.gid.raw = {0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9};
  return a;
}

Device device_of(std::vector<LocalAddress> addresses, const config::Options& options = {}) {
  return make_device(options, addresses, kGuid);
}

config::Options with_identity(config::Identity identity) {
  config::Options o;
  o.identity = identity;
  return o;
}

TEST(UdMtu, LargestIbMtuThatFitsBesideTheHeaders) {
  EXPECT_EQ(ud_mtu(1500, true), Mtu::b1024);
  EXPECT_EQ(ud_mtu(1500, false), Mtu::b1024);
  EXPECT_EQ(ud_mtu(9000, true), Mtu::b4096);
  EXPECT_EQ(ud_mtu(65536, true), Mtu::b4096);
  // 20 + 8 + 32 bytes of headers with IPv4, 20 more with IPv6.
  EXPECT_EQ(ud_mtu(2048 + 60, true), Mtu::b2048);
  EXPECT_EQ(ud_mtu(2048 + 59, true), Mtu::b1024);
  EXPECT_EQ(ud_mtu(2048 + 80, false), Mtu::b2048);
  EXPECT_EQ(ud_mtu(2048 + 79, false), Mtu::b1024);
  EXPECT_EQ(ud_mtu(68, true), Mtu::b256);
}

TEST(Mtu, Bytes) {
  EXPECT_EQ(bytes_of(Mtu::b256), 256U);
  EXPECT_EQ(bytes_of(Mtu::b4096), 4096U);
}

TEST(Device, PortFollowsTheAddresses) {
  const Device d = device_of({ipv4(0x0a4d0102), ipv6()});
  EXPECT_EQ(d.port.state, PortState::active);
  EXPECT_EQ(d.port.physical_state, PhysicalState::link_up);
  EXPECT_EQ(d.port.gid_table_length, 2U);
  EXPECT_EQ(d.port.lid, 0x0102);
  EXPECT_EQ(d.port.max_mtu, Mtu::b4096);
  EXPECT_EQ(d.port.active_mtu, Mtu::b1024);
  EXPECT_EQ(d.attributes.node_guid, kGuid);
  EXPECT_EQ(d.attributes.firmware, WEFT_TEST_VERSION);
  EXPECT_EQ(d.complaint, "");
}

TEST(Device, ActiveMtuFitsTheSmallestLink) {
  EXPECT_EQ(device_of({ipv4(0x0a000001, 9000)}).port.active_mtu, Mtu::b4096);
  EXPECT_EQ(device_of({ipv4(0x0a000001, 9000), ipv4(0x0a000002, 1500)}).port.active_mtu,
            Mtu::b1024);
  EXPECT_EQ(device_of({ipv4(0x7f000001, 65536)}).port.active_mtu, Mtu::b4096);
}

TEST(Device, ActiveMtuIsThatOfTheLinkThatTheUserChose) {
  config::Options o;
  o.ip = "10.0.0.1";
  const std::vector<LocalAddress> host{ipv4(0x0a000001, 9000), ipv4(0x0a000002, 1500)};
  EXPECT_EQ(device_of(host, o).port.active_mtu, Mtu::b4096);
  o.ip = "10.0.0.2";
  EXPECT_EQ(device_of(host, o).port.active_mtu, Mtu::b1024);
  o.ip = "10.0.0.3";
  EXPECT_EQ(device_of(host, o).port.active_mtu, Mtu::b1024) << "nothing was chosen";
}

TEST(Device, WithoutAddress_PortIsDown) {
  const Device d = device_of({});
  EXPECT_EQ(d.port.state, PortState::down);
  EXPECT_EQ(d.port.gid_table_length, 0U);
  EXPECT_EQ(d.port.lid, 0);
}

TEST(Device, LimitsAreThoseThatVerbsEnforces) {
  const DeviceAttributes a = device_of({ipv4(0x0a000001)}).attributes;
  EXPECT_EQ(a.max_qp_wr, 16384U);
  EXPECT_EQ(a.max_sge, 30U);
  EXPECT_EQ(a.max_cqe, 4194304U);
  EXPECT_EQ(a.max_qp_rd_atom, 16U);
  EXPECT_EQ(a.max_qp_init_rd_atom, 16U);
  EXPECT_GE(a.max_srq, 65000U);
  EXPECT_GE(a.max_srq_wr, 16384U);
  EXPECT_EQ(kMaxInline, 1024U);
}

TEST(Device, VendorIsNoneThatProgramsKnow) {
  const uint32_t vendor = device_of({}).attributes.vendor_id;
  for (const uint32_t known :
       {0x0U, 0x02c9U, 0x15b3U, 0x1d0fU, 0x8086U, 0x1425U, 0x14e4U, 0x1077U}) {
    EXPECT_NE(vendor, known);
  }
}

TEST(Identity, Ib) {
  const Device d = device_of({ipv4(0x0a000001)});
  EXPECT_EQ(d.attributes.node_type, NodeType::channel_adapter);
  EXPECT_EQ(d.attributes.transport, Transport::infiniband);
  EXPECT_EQ(d.port.link_layer, LinkLayer::ethernet);
  EXPECT_EQ(d.port.sm_lid, 0);
  EXPECT_NE(d.port.capabilities & kCapabilityIpBasedGids, 0U);
}

TEST(Identity, Iwarp) {
  const Device d = device_of({ipv4(0x0a000001)}, with_identity(config::Identity::iwarp));
  EXPECT_EQ(d.attributes.node_type, NodeType::rnic);
  EXPECT_EQ(d.attributes.transport, Transport::iwarp);
  EXPECT_EQ(d.port.link_layer, LinkLayer::ethernet);
}

TEST(Identity, IbLid) {
  const Device d = device_of({ipv4(0x0a00bfff)}, with_identity(config::Identity::ib_lid));
  EXPECT_EQ(d.attributes.node_type, NodeType::channel_adapter);
  EXPECT_EQ(d.attributes.transport, Transport::infiniband);
  EXPECT_EQ(d.port.link_layer, LinkLayer::infiniband);
  EXPECT_EQ(d.port.sm_lid, 1);
  EXPECT_EQ(d.port.capabilities & kCapabilityIpBasedGids, 0U);
  EXPECT_EQ(d.complaint, "");
}

TEST(Identity, IbLid_ComplainsOfALidThatInfinibandRefuses) {
  const auto identity = with_identity(config::Identity::ib_lid);
  EXPECT_THAT(device_of({ipv4(0x0a00c000)}, identity).complaint, HasSubstr("49152"));
  EXPECT_THAT(device_of({ipv6()}, identity).complaint, HasSubstr("LID of 1..49151"));
}

TEST(OptionLid, ReplacesThatOfTheAddress) {
  config::Options o;
  o.lid = 7;
  const Device d = device_of({ipv4(0x0a4d0102)}, o);
  EXPECT_EQ(d.port.lid, 7);
  EXPECT_EQ(d.resolve_lid(7), Gid::from_ipv4(0x0a4d0102)) << "the port's own LID is itself";
  EXPECT_EQ(d.resolve_lid(8), Gid::from_ipv4(0x0a4d0008));
}

TEST(OptionIp, ReachesTheTable) {
  config::Options o;
  o.ip = "10.0.0.2";
  const Device d = device_of({ipv4(0x0a000001), ipv4(0x0a000002)}, o);
  EXPECT_EQ(d.gids.front().gid, Gid::from_ipv4(0x0a000002));
  EXPECT_EQ(d.port.lid, 2);
  o.ip = "10.0.0.3";
  EXPECT_THAT(device_of({ipv4(0x0a000001)}, o).complaint, HasSubstr("10.0.0.3"));
}

TEST(ResolveLid, IsTheLowerHalfOfTheIpv4Address) {
  const Device d = device_of({ipv6(), ipv4(0x0a4d0102)});
  EXPECT_EQ(d.resolve_lid(0x0203), Gid::from_ipv4(0x0a4d0203));
  EXPECT_EQ(d.resolve_lid(d.port.lid), Gid::from_ipv4(0x0a4d0102));
  EXPECT_EQ(d.resolve_lid(0xffff), Gid::from_ipv4(0x0a4dffff));
  EXPECT_EQ(d.resolve_lid(0), std::nullopt);
  EXPECT_EQ(device_of({ipv6()}).resolve_lid(5), std::nullopt);
}

TEST(Find, GivesTheEntryOfAnAddress) {
  const Device d = device_of({ipv4(0x0a4d0102), ipv6()});
  ASSERT_NE(d.find(ipv6().gid), nullptr);
  EXPECT_EQ(d.find(ipv6().gid), &d.gids[1]);
  EXPECT_EQ(d.find(Gid::from_ipv4(0x0a4d0103)), nullptr);
}

TEST(QueryDevice, OfThisHost_IsConsistent) {
  const Device d = query_device({});
  EXPECT_EQ(d.port.gid_table_length, d.gids.size());
  EXPECT_EQ(d.port.state == PortState::active, !d.gids.empty());
  EXPECT_NE(d.attributes.node_guid, 0U);
  EXPECT_EQ(d.attributes.node_guid, query_device({}).attributes.node_guid);
}

}  // namespace
}  // namespace weft::device
