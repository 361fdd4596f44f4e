#include "device/system.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <net/if.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <set>

#include "tests/support/refused_calls.h"

namespace weft::device {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr const char* kHeader =
    "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n";

TEST(DefaultRoutes, Ipv4_BestMetricOfEachInterface) {
  const std::string text = std::string(kHeader) +
                           "wlan0\t00000000\t010200C0\t0003\t0\t0\t600\t00000000\t0\t0\t0\n"
                           "eth0\t00000000\t010200C0\t0003\t0\t0\t200\t00000000\t0\t0\t0\n"
                           "eth0\t00000000\t020200C0\t0003\t0\t0\t100\t00000000\t0\t0\t0\n"
                           "eth0\t000200C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n";
  EXPECT_THAT(default_routes_ipv4(text), ElementsAre(Pair("eth0", 100), Pair("wlan0", 600)));
}

TEST(DefaultRoutes, Ipv4_RejectDownHalfAndBrokenLines_AreNoDefault) {
  const std::string text = std::string(kHeader) +
                           "lo\t00000000\t00000000\t0201\t0\t0\t0\t00000000\t0\t0\t0\n"
                           "eth1\t00000000\t00000000\t0002\t0\t0\t0\t00000000\t0\t0\t0\n"
                           "tun0\t00000000\t00000000\t0001\t0\t0\t0\t00000080\t0\t0\t0\n"
                           "eth2\t00000000\t00000000\tnone\t0\t0\t0\t00000000\t0\t0\t0\n"
                           "eth3\t00000000\n\n";
  EXPECT_THAT(default_routes_ipv4(text), IsEmpty());
  EXPECT_THAT(default_routes_ipv4(""), IsEmpty());
}

TEST(DefaultRoutes, Ipv6_MetricIsHexadecimal) {
  const std::string zero(32, '0');
  const std::string text =
      "20010db8000000000000000000000000 40 " + zero + " 00 " + zero +
      " 00000100 00000001 00000000 00000001     eth0\n" + zero + " 00 " + zero +
      " 00 20010db8000000000000000000000001 00000400 00000002 00000000 00000003     eth0\n" + zero +
      " 00 " + zero + " 00 " + zero + " ffffffff 00000001 00000000 00200200       lo\n";
  EXPECT_THAT(default_routes_ipv6(text), ElementsAre(Pair("eth0", 1024)));
}

TEST(LocalAddresses, OfThisHost_AreWhatTheKernelKnows) {
  const std::vector<LocalAddress> all = local_addresses();
  for (const LocalAddress& a : all) {
    EXPECT_FALSE(a.gid.is_zero()) << a.interface;
    EXPECT_EQ(a.ifindex, if_nametoindex(a.interface.c_str())) << a.interface;
    EXPECT_GE(a.link_mtu, 68U) << a.interface;
    EXPECT_EQ(a.scope_id != 0, a.gid.is_link_local()) << a.gid.to_string();
    if (a.gid == Gid::from_ipv4(0x7f000001)) {
      EXPECT_EQ(a.interface, "lo");
    }
  }
  EXPECT_EQ(make_gid_table(all, "", nullptr).empty(), all.empty());
}

TEST(Ipv6Addresses, OfTheFile) {
  const std::vector<LocalAddress> all = ipv6_addresses(
      "00000000000000000000000000000001 01 80 10 80       lo\n"
      "fe800000000000000000000000000102 0a 40 20 80     eth0\n"
      "20010db8000000000000000000000003 02 40 00 00     eth1\n"
      "20010db800000000000000000000000 02 40 00 00     eth1\n"
      "20010db80000000000000000000000zz 02 40 00 00     eth1\n"
      "20010db8000000000000000000000004 02 40 00\n\n");
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0].gid.to_string(), "::1");
  EXPECT_EQ(all[0].interface, "lo");
  EXPECT_EQ(all[0].scope_id, 0U);
  EXPECT_EQ(all[1].gid.to_string(), "fe80::102");
  EXPECT_EQ(all[1].interface, "eth0");
  EXPECT_EQ(all[1].scope_id, 10U) << "where it leads is a matter of the interface";
  EXPECT_EQ(all[2].gid.to_string(), "2001:db8::3");
  EXPECT_EQ(all[2].scope_id, 0U);
}

// In a child, where system calls are refused for good. `body` gives the number of its first wrong
// statement, or 0.
void expect_in_child(int (*body)()) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) ::_exit(body());
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 100) GTEST_SKIP() << "no seccomp filters here";
  EXPECT_EQ(WEXITSTATUS(status), 0) << "the statement of this number";
}

bool refuse_netlink() {
  return test::refuse_call(SYS_socket, EAFNOSUPPORT, AF_NETLINK);
}

// As RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX has it (systemd.exec(5)).
TEST(LocalAddresses, WithoutNetlinkAreTheSame) {
  expect_in_child([] {
    const auto as_text = [](const std::vector<LocalAddress>& all) {
      std::set<std::string> texts;
      for (const LocalAddress& a : all) {
        texts.insert(a.gid.to_string() + "%" + a.interface + " " + std::to_string(a.ifindex) + " " +
                     std::to_string(a.scope_id) + " " + std::to_string(a.link_mtu) + " " +
                     std::to_string(a.default_route_metric) + (a.up ? " up" : " down") +
                     (a.running ? " running" : " without a carrier"));
      }
      return texts;
    };
    const auto before = as_text(local_addresses());
    const HostFacts facts = host_facts();
    if (!refuse_netlink()) return 100;
    std::string complaint;
    if (as_text(local_addresses(&complaint)) != before) return 1;
    if (!complaint.empty()) return 2;
    const HostFacts now = host_facts();
    if (now.machine_id != facts.machine_id || now.name != facts.name) return 3;
    return now.mac.empty() == facts.mac.empty() ? 0 : 4;
  });
}

TEST(LocalAddresses, WhereTheyAreNotToldThereIsASentence) {
  expect_in_child([] {
    for (const int family : {AF_NETLINK, AF_INET, AF_INET6}) {
      if (!test::refuse_call(SYS_socket, EAFNOSUPPORT, static_cast<uint32_t>(family))) return 100;
    }
    if (!test::refuse_call(SYS_openat, EACCES)) return 100;
    std::string complaint;
    if (!local_addresses(&complaint).empty()) return 1;
    if (complaint.find("AF_NETLINK") == std::string::npos) return 2;
    return local_addresses(nullptr).empty() ? 0 : 3;
  });
}

HostFacts facts(std::string machine_id, std::vector<uint8_t> mac, std::string name) {
  return {std::move(machine_id), std::move(mac), std::move(name)};
}
constexpr const char* kId = "0123456789abcdef0123456789abcdef";

TEST(Guid, MachineIdDecides_WhereItIsValid) {
  const uint64_t guid = make_guid(facts(kId, {1, 2, 3, 4, 5, 6}, "a"));
  EXPECT_EQ(guid, make_guid(facts(kId, {6, 5, 4, 3, 2, 1}, "b")));
  std::string other = kId;
  other.back() = 'e';
  EXPECT_NE(guid, make_guid(facts(other, {1, 2, 3, 4, 5, 6}, "a")));
}

TEST(Guid, WithoutMachineId_MacThenNameDecide) {
  for (const char* id : {"", "uninitialized", "0123", "00000000000000000000000000000000"}) {
    const uint64_t by_mac = make_guid(facts(id, {1, 2, 3, 4, 5, 6}, "a"));
    EXPECT_EQ(by_mac, make_guid(facts(id, {1, 2, 3, 4, 5, 6}, "b"))) << id;
    EXPECT_NE(by_mac, make_guid(facts(id, {1, 2, 3, 4, 5, 7}, "a"))) << id;
    EXPECT_NE(make_guid(facts(id, {}, "a")), make_guid(facts(id, {}, "b"))) << id;
  }
}

TEST(Guid, IsLocallyAdministeredAndOfNoGroup) {
  for (const HostFacts& f :
       {facts(kId, {}, ""), facts("", {1, 2, 3}, ""), facts("", {}, "host"), facts("", {}, "")}) {
    EXPECT_EQ(make_guid(f) >> 56 & 3, 2U);
  }
}

TEST(Guid, OfThisHost_IsStable) {
  EXPECT_EQ(make_guid(host_facts()), make_guid(host_facts()));
}

}  // namespace
}  // namespace weft::device
