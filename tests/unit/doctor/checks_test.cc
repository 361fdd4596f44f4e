#include "doctor/checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/adapter_ports.h"

namespace weft::doctor {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

DoctorFacts healthy() {
  DoctorFacts f;
  f.libraries = {{"/opt/lib/weft/libibverbs.so.1", ""}, {"/opt/lib/weft/librdmacm.so.1", ""}};
  f.addresses = {{"192.0.2.1", "eth0", 1500, false}};
  f.descriptors_soft = 1024;
  f.descriptors_hard = 524'288;
  f.congestion = {"cubic", {"cubic", "reno"}};
  f.socket_memory = {kDatagramBuffer, kDatagramBuffer};
  f.ports = PortFact{32768, 60999, 28232, 40};
  f.crc_engine = "isa-l";
  return f;
}

void expect(const Finding& finding, Severity severity, const std::string& words) {
  EXPECT_EQ(finding.severity, severity) << finding.sentence;
  EXPECT_THAT(finding.sentence, HasSubstr(words));
  if (severity == Severity::ok) {
    EXPECT_THAT(finding.remedy, IsEmpty());
  } else {
    EXPECT_THAT(finding.remedy, Not(IsEmpty())) << "every complaint says what to do";
  }
}

TEST(CheckAll, HealthyMachineHasOnlyOk) {
  const auto findings = check_all(healthy());
  EXPECT_EQ(findings.size(), 11U);
  for (const Finding& finding : findings) expect(finding, Severity::ok, "");
  EXPECT_TRUE(all_well(findings));
}

TEST(CheckAll, EachFactReachesItsCheck) {
  DoctorFacts f;
  f.libraries = {{"/opt/lib/weft/libibverbs.so.1", "does not exist"}};
  f.congestion = {"bbr", {}};
  f.bind_error = "UDP: Permission denied";
  f.crc_engine = "table";
  f.kernel_devices = {"mlx5_0"};
  f.option_errors = {"WEFT_FOO is unknown"};
  f.sdp.library = {"/opt/lib/weft/libweft-sdp.so", "does not exist"};
  for (const Finding& finding : check_all(f))
    EXPECT_NE(finding.severity, Severity::ok) << finding.check;
}

TEST(CheckLibraries, NamesFolderAndError) {
  expect(check_libraries(healthy().libraries), Severity::ok,
         "libibverbs.so.1 and librdmacm.so.1 load from /opt/lib/weft");
  expect(
      check_libraries({{"/w/libibverbs.so.1", ""}, {"/w/librdmacm.so.1", "undefined symbol: x"}}),
      Severity::problem, "/w/librdmacm.so.1: undefined symbol: x");
}

TEST(CheckAddresses, NoneOnlyLoopbackAndRest) {
  expect(check_addresses({}, "", ""), Severity::problem, "no GID");
  expect(check_addresses({{"127.0.0.1", "lo", 65536, true}, {"::1", "lo", 65536, true}}, "", ""),
         Severity::note, "only loopback: 127.0.0.1 (lo, MTU 65536), ::1");
  expect(check_addresses({{"127.0.0.1", "lo", 65536, true}, {"192.0.2.1", "eth0", 9000, false}}, "",
                         ""),
         Severity::ok, "192.0.2.1 (eth0, MTU 9000)");
}

TEST(CheckAddresses, OptionThatDoesNotFit) {
  expect(check_addresses({{"192.0.2.1", "eth0", 1500, false}}, "ip=eth7 fits no address", ""),
         Severity::problem, "ip=eth7");
}

// A service's RestrictAddressFamilies, say: it is not the interfaces that are to blame.
TEST(CheckAddresses, NetlinkForbidden) {
  const Finding finding = check_addresses({}, "", "Address family not supported by protocol");
  expect(finding, Severity::problem, "netlink: Address family not supported by protocol");
  EXPECT_THAT(finding.sentence, Not(HasSubstr("interface")));
  EXPECT_THAT(finding.remedy, HasSubstr("AF_NETLINK"));
  expect(check_addresses({{"192.0.2.1", "eth0", 1500, false}}, "", "Operation not permitted"),
         Severity::ok, "192.0.2.1 (eth0, MTU 1500)");
}

TEST(CheckDescriptors, ByTheHardLimit) {
  expect(check_descriptors(1024, 524'288), Severity::ok, "524288 open files");
  expect(check_descriptors(1064, 1064), Severity::ok, "1064");
  expect(check_descriptors(256, 1063), Severity::note, "room for about 999 connected QPs");
  expect(check_descriptors(80, 80), Severity::note, "about 16");
  expect(check_descriptors(64, 79), Severity::problem, "79 open files");
  expect(check_descriptors(3, 3), Severity::problem, "3 open files");
}

TEST(CheckCongestion, OnlyBbrMatters) {
  expect(check_congestion({"cubic", {}}), Severity::ok, "cubic");
  expect(check_congestion({"", {}}), Severity::ok, "not readable");
  expect(check_congestion({"bbr", {"cubic", "reno"}}), Severity::ok, "weft chooses cubic");
  expect(check_congestion({"bbr", {"reno"}}), Severity::note, "weft chooses reno");
  expect(check_congestion({"bbr", {}}), Severity::note, "streams stay with bbr");
}

TEST(CheckSocketMemory, EitherMayBeSmall) {
  expect(check_socket_memory({kDatagramBuffer, kDatagramBuffer}), Severity::ok, "4194304");
  expect(check_socket_memory({212'992, kDatagramBuffer}), Severity::note,
         "gets 212992 for receiving, 4194304 for sending");
  expect(check_socket_memory({8 << 20, 212'992}), Severity::note, "212992 for sending");
  expect(check_socket_memory({std::nullopt, kDatagramBuffer}), Severity::note, "does not say");
  EXPECT_THAT(check_socket_memory({212'992, 212'992}).remedy,
              HasSubstr("sysctl -w net.core.rmem_max=4194304 net.core.wmem_max=4194304"));
}

TEST(CheckPorts, CountsWhatIsLeft) {
  expect(check_ports(PortFact{32768, 60999, 28232, 28168}), Severity::ok, "28168 of them taken");
  expect(check_ports(PortFact{32768, 60999, 28232, 28169}), Severity::note, "28169");
  expect(check_ports(PortFact{32768, 60999, 28232, 28232}), Severity::problem, "28232");
  expect(check_ports(PortFact{25000, 26000, 0, 0}), Severity::problem, "0 ports");
  expect(check_ports(std::nullopt), Severity::note, "not readable");
}

TEST(CheckBind, GivesTheKernelsReason) {
  expect(check_bind(""), Severity::ok, "TCP and UDP");
  expect(check_bind("UDP: Permission denied"), Severity::problem, "UDP: Permission denied");
}

TEST(CheckCrc, WithoutFoldingItIsSlower) {
  expect(check_crc("vpclmulqdq"), Severity::ok, "VPCLMULQDQ");
  expect(check_crc("vpclmulqdq-256"), Severity::ok, "VPCLMULQDQ");
  expect(check_crc("isa-l"), Severity::ok, "ISA-L");
  expect(check_crc("sse4.2"), Severity::note, "'sse4.2'");
}

TEST(CheckKernelDevices, AreHidden) {
  expect(check_kernel_devices({}), Severity::ok, "none is needed");
  expect(check_kernel_devices({"mlx5_0", "siw0"}), Severity::note, "mlx5_0, siw0");
}

TEST(CheckOptions, ComplaintsAreKept) {
  expect(check_options({}), Severity::ok, "");
  expect(check_options({"WEFT_A is wrong", "WEFT_B is unknown"}), Severity::note,
         "WEFT_A is wrong; WEFT_B is unknown");
}

TEST(CheckSdp, ALibraryThatIsMissingOrLinesThatAreWrongAreNotes) {
  expect(check_sdp({{"/lib/libweft-sdp.so", "does not exist"}, "", {}}), Severity::note,
         "/lib/libweft-sdp.so: does not exist");
  expect(check_sdp({{"/lib/libweft-sdp.so", ""}, "/etc/libsdp.conf", {"/etc/libsdp.conf:3: no"}}),
         Severity::note, "/etc/libsdp.conf:3: no");
  expect(check_sdp({{"/lib/libweft-sdp.so", ""}, "/etc/libsdp.conf", {}}), Severity::ok,
         "/etc/libsdp.conf");
}

TEST(GatherFacts, LooksAtThisMachine) {
  const DoctorFacts f = gather_facts();
  ASSERT_EQ(f.libraries.size(), 2U);
  EXPECT_GT(f.descriptors_hard, 0U);
  EXPECT_GE(f.descriptors_hard, f.descriptors_soft);
  EXPECT_EQ(f.bind_error, "");
  ASSERT_TRUE(f.socket_memory.receive && f.socket_memory.send);
  EXPECT_GT(*f.socket_memory.receive, 0U);
  EXPECT_LE(*f.socket_memory.receive, kDatagramBuffer);
  EXPECT_THAT(f.crc_engine, Not(IsEmpty()));
  ASSERT_TRUE(f.ports.has_value());
  EXPECT_LE(f.ports->low, f.ports->high);
  EXPECT_LE(f.ports->in_use, f.ports->usable);
}

}  // namespace
}  // namespace weft::doctor
