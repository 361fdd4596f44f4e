#include "device/gid_table.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weft::device {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

LocalAddress address(const char* text, const char* interface) {
  LocalAddress a;
  a.interface = interface;
  if (in_addr v4{}; inet_pton(AF_INET, text, &v4) == 1) {
    a.gid = Gid::from_ipv4(ntohl(v4.s_addr));
  } else {
    EXPECT_EQ(inet_pton(AF_INET6, text, a.gid.raw.data()), 1) << text;
  }
  return a;
}

LocalAddress with_route(LocalAddress a, uint32_t metric) {
  a.default_route_metric = metric;
  return a;
}

LocalAddress link_local(const char* text, const char* interface, uint32_t scope) {
  LocalAddress a = address(text, interface);
  a.scope_id = a.ifindex = scope;
  return a;
}

std::vector<LocalAddress> typical_host() {
  return {address("127.0.0.1", "lo"),
          address("172.17.0.1", "docker0"),
          with_route(address("192.0.2.7", "eth0"), 100),
          address("10.0.0.7", "eth1"),
          address("::1", "lo"),
          link_local("fe80::1:7", "eth0", 2),
          with_route(address("2001:db8::7", "eth0"), 1024)};
}

std::vector<std::string> names(const std::vector<GidEntry>& table) {
  std::vector<std::string> all;
  for (const GidEntry& e : table) all.push_back(e.gid.to_string() + "%" + e.interface);
  return all;
}

std::vector<std::string> names_for(const std::vector<LocalAddress>& addresses,
                                   std::string_view first = "", std::string* complaint = nullptr) {
  return names(make_gid_table(addresses, first, complaint));
}

TEST(GidTable, DefaultRouteIsFirst_Ipv4BeforeIpv6_LoopbackLeftOut) {
  EXPECT_THAT(names_for(typical_host()),
              ElementsAre("192.0.2.7%eth0", "172.17.0.1%docker0", "10.0.0.7%eth1",
                          "2001:db8::7%eth0", "fe80::1:7%eth0"));
}

TEST(GidTable, LowerMetricWins) {
  EXPECT_THAT(names_for({with_route(address("192.0.2.1", "wlan0"), 600),
                         with_route(address("192.0.2.2", "eth0"), 100)}),
              ElementsAre("192.0.2.2%eth0", "192.0.2.1%wlan0"));
}

TEST(GidTable, EntryCarriesScopeIndexAndMtu) {
  LocalAddress a = link_local("fe80::9", "eth3", 5);
  a.link_mtu = 9000;
  const std::vector<LocalAddress> addresses{a};
  const auto table = make_gid_table(addresses, "", nullptr);
  ASSERT_EQ(table.size(), 1U);
  EXPECT_EQ(table[0].gid, a.gid);
  EXPECT_EQ(table[0].interface, "eth3");
  EXPECT_EQ(table[0].ifindex, 5U);
  EXPECT_EQ(table[0].scope_id, 5U);
  EXPECT_EQ(table[0].link_mtu, 9000U);
}

TEST(GidTable, LoopbackAlone_IsShown) {
  EXPECT_THAT(names_for({address("::1", "lo"), address("127.0.0.1", "lo")}),
              ElementsAre("127.0.0.1%lo", "::1%lo"));
}

TEST(GidTable, PublicAddressOnLo_IsNoLoopback) {
  EXPECT_THAT(names_for({address("127.0.0.1", "lo"), address("198.51.100.1", "lo")}),
              ElementsAre("198.51.100.1%lo"));
}

TEST(GidTable, InterfaceThatIsDown_IsLeftOut) {
  auto host = typical_host();
  for (LocalAddress& a : host) a.up = a.interface != "eth0";
  EXPECT_THAT(names_for(host), ElementsAre("172.17.0.1%docker0", "10.0.0.7%eth1"));
  for (LocalAddress& a : host) a.up = a.interface == "lo";
  EXPECT_THAT(names_for(host), ElementsAre("127.0.0.1%lo", "::1%lo"));
  for (LocalAddress& a : host) a.up = false;
  EXPECT_THAT(names_for(host), IsEmpty());
}

TEST(GidTable, WithoutCarrier_ComesAfterThoseThatHaveOne) {
  auto bridge = address("172.17.0.1", "docker0");
  bridge.running = false;
  EXPECT_THAT(names_for({bridge, address("10.0.0.7", "eth1")}),
              ElementsAre("10.0.0.7%eth1", "172.17.0.1%docker0"));
}

TEST(GidTable, Ipv4LinkLocal_ComesAfterRoutableIpv4AndBeforeIpv6) {
  EXPECT_THAT(names_for({address("169.254.3.4", "eth0"), address("10.0.0.7", "eth1"),
                         address("2001:db8::7", "eth0")}),
              ElementsAre("10.0.0.7%eth1", "169.254.3.4%eth0", "2001:db8::7%eth0"));
}

TEST(GidTable, SameLinkLocalOnTwoLinks_IsTwoEntries_SameIpv4IsOne) {
  EXPECT_THAT(names_for({address("10.0.0.7", "a"), address("10.0.0.7", "b"),
                         link_local("fe80::7", "a", 2), link_local("fe80::7", "b", 3)}),
              ElementsAre("10.0.0.7%a", "fe80::7%a", "fe80::7%b"));
}

TEST(OptionIp, AddressMovesToTheFront) {
  std::string complaint;
  EXPECT_THAT(names_for(typical_host(), "10.0.0.7", &complaint),
              ElementsAre("10.0.0.7%eth1", "192.0.2.7%eth0", "172.17.0.1%docker0",
                          "2001:db8::7%eth0", "fe80::1:7%eth0"));
  EXPECT_EQ(complaint, "");
}

TEST(OptionIp, InterfaceNameMovesItsBestAddress) {
  EXPECT_EQ(names_for(typical_host(), "docker0").front(), "172.17.0.1%docker0");
  EXPECT_EQ(names_for({address("2001:db8::5", "eth5"), address("192.0.2.5", "eth5"),
                       with_route(address("10.0.0.1", "eth0"), 1)},
                      "eth5")
                .front(),
            "192.0.2.5%eth5");
}

TEST(OptionIp, Loopback_IsShownWhenAskedFor) {
  for (const char* wish : {"lo", "127.0.0.1", "::ffff:127.0.0.1"}) {
    const auto all = names_for(typical_host(), wish);
    EXPECT_EQ(all.size(), 6U) << wish;
    EXPECT_EQ(all.front(), "127.0.0.1%lo") << wish;
  }
}

TEST(OptionIp, ScopedAddress_ChoosesTheLink) {
  const std::vector<LocalAddress> host{address("10.0.0.7", "a"), link_local("fe80::7", "a", 2),
                                       link_local("fe80::7", "b", 3)};
  EXPECT_EQ(names_for(host, "fe80::7%b").front(), "fe80::7%b");
  EXPECT_EQ(names_for(host, "fe80::7").front(), "fe80::7%a");
  std::string complaint;
  EXPECT_EQ(names_for(host, "fe80::7%c", &complaint).front(), "10.0.0.7%a");
  EXPECT_THAT(complaint, HasSubstr("option ip: fe80::7%c"));
}

TEST(OptionIp, ThatFitsNothing_ComplainsAndNamesWhatThereIs) {
  std::string complaint;
  EXPECT_THAT(names_for(typical_host(), "192.0.2.8", &complaint), names_for(typical_host()));
  EXPECT_THAT(complaint, HasSubstr("option ip: 192.0.2.8 is neither"));
  EXPECT_THAT(complaint, HasSubstr(" 10.0.0.7%eth1"));
}

TEST(IsLoopback, ByAddress) {
  EXPECT_TRUE(is_loopback(address("127.8.9.10", "eth0").gid));
  EXPECT_TRUE(is_loopback(address("::1", "eth0").gid));
  EXPECT_FALSE(is_loopback(address("128.0.0.1", "lo").gid));
  EXPECT_FALSE(is_loopback(address("::2", "lo").gid));
  EXPECT_TRUE(is_localhost(address("127.0.0.1", "eth0").gid));
  EXPECT_TRUE(is_localhost(address("::1", "eth0").gid));
  EXPECT_FALSE(is_localhost(address("127.0.0.2", "lo").gid));
  EXPECT_FALSE(is_localhost(address("::2", "lo").gid));
}

// A sgid_index is a byte in verbs.
TEST(GidTable, HasNoMoreEntriesThanAnIndexCanName) {
  std::vector<LocalAddress> many;
  for (int i = 0; i < 300; ++i) {
    const std::string text = "10.1." + std::to_string(i / 100) + "." + std::to_string(i % 100 + 1);
    many.push_back(address(text.c_str(), "eth0"));
  }
  const auto table = make_gid_table(many, "", nullptr);
  ASSERT_EQ(table.size(), 256U);
  EXPECT_EQ(table[255].gid, many[255].gid) << "the best ones";
}

}  // namespace
}  // namespace weft::device
