#include "doctor/path_checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace weft::doctor {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Outcome = SegmentFacts::Outcome;

// A way of 9000 bytes on which nothing is wrong.
PathFacts good() {
  PathFacts f{.peer = "192.0.2.7", .port = 4349};
  f.own = f.own_seen = "192.0.2.1:40000";
  f.own_udp = f.own_udp_seen = "192.0.2.1:40001";
  f.peer_own = f.dialed = "192.0.2.7:4349";
  f.program_port = 41000;
  f.program_udp = true;
  f.known_mtu = {9000, 9000};
  f.interface = "eth0";
  f.segments.fill({.outcome = Outcome::passed, .full = 9000, .largest = 9000, .after = 9000});
  f.datagrams.fill({.passes = true,
                    .most = 9000,
                    .largest = 9000,
                    .sent = 256,
                    .lost = 0,
                    .fragments = true,
                    .tos = kMarks});
  return f;
}
DatagramFacts& there(PathFacts& f) {
  return f.datagrams[0];
}

Finding finding(const PathFacts& f, const std::string& check) {
  const auto all = check_path(f);
  const auto at =
      std::find_if(all.begin(), all.end(), [&](const Finding& one) { return one.check == check; });
  EXPECT_NE(at, all.end()) << check;
  return at != all.end() ? *at : Finding{};
}
void expect(const Finding& finding, Severity severity, const std::string& words) {
  EXPECT_EQ(finding.severity, severity) << finding.sentence;
  EXPECT_THAT(finding.sentence, HasSubstr(words));
  if (severity == Severity::ok) {
    EXPECT_THAT(finding.remedy, IsEmpty());
  } else {
    EXPECT_THAT(finding.remedy, Not(IsEmpty())) << finding.sentence;
  }
}

TEST(CheckPath, NothingIsWrong) {
  const auto findings = check_path(good());
  EXPECT_EQ(findings.size(), 11U);
  for (const Finding& f : findings) expect(f, Severity::ok, "");
  EXPECT_TRUE(all_well(findings));
}

TEST(CheckPath, LargePacketsVanishAndNobodySaysSo) {
  PathFacts f = good();
  f.segments[0] = {.outcome = Outcome::vanished, .full = 9000, .largest = 1500};
  there(f).largest = 1500;
  there(f).fragments.reset();
  expect(finding(f, "tcp-there"), Severity::problem,
         "full segments (packets of 9000 bytes) vanish");
  expect(finding(f, "tcp-there"), Severity::problem, "those of 1500 bytes pass");
  EXPECT_THAT(finding(f, "tcp-there").remedy, HasSubstr("ip link set dev eth0 mtu 1500"));
  expect(finding(f, "udp-there"), Severity::problem, "packets of more than 1500 bytes vanish");
  expect(finding(f, "udp-back"), Severity::ok, "9000");
  expect(finding(f, "fragments"), Severity::untested, "");
}

TEST(CheckPath, ARouterSaysThatLargePacketsDoNotPass) {
  PathFacts f = good();
  f.segments[0].after = 1500;
  f.known_mtu[0] = 1500;
  there(f).largest = 1500;
  expect(finding(f, "tcp-there"), Severity::ok, "a router says so");
  expect(finding(f, "udp-there"), Severity::note, "UD goes by the interface");
}

TEST(CheckPath, NoSegmentPasses) {
  PathFacts f = good();
  f.segments[1] = {.outcome = Outcome::vanished, .full = 9000};
  expect(finding(f, "tcp-back"), Severity::problem, "hang with the first message");
}

TEST(CheckPath, AnUnclearTrialIsNoGoodNews) {
  PathFacts f = good();
  f.segments[1].outcome = Outcome::unclear;
  expect(finding(f, "tcp-back"), Severity::untested, "neither");
  f.segments[1].outcome = Outcome::untested;
  expect(finding(f, "tcp-back"), Severity::untested, "not tested");
}

TEST(CheckPath, NoUdp) {
  PathFacts f = good();
  f.datagrams.fill({.most = 9000});
  f.program_udp = false;
  expect(finding(f, "udp-there"), Severity::problem, "no datagram arrives");
  expect(finding(f, "udp-back"), Severity::problem, "no datagram arrives");
  expect(finding(f, "ports"), Severity::note, "TCP passes");
  expect(finding(f, "marks"), Severity::untested, "");
}

TEST(CheckPath, UdpFromThePeerAlone) {
  PathFacts f = good();
  f.datagrams[0] = {.most = 9000};
  f.datagrams[1] = {.passes = true, .most = 9000};
  expect(finding(f, "udp-there"), Severity::problem, "no datagram arrives");
  expect(finding(f, "udp-back"), Severity::untested, "larger ones were not tested");
}

TEST(CheckPath, PortsOfPrograms) {
  PathFacts f = good();
  f.program_udp = false;
  expect(finding(f, "ports"), Severity::problem, "UDP does not");
  f.program_tcp = ETIMEDOUT;
  expect(finding(f, "ports"), Severity::problem, "neither TCP nor UDP");
  f.program_udp = true;
  expect(finding(f, "ports"), Severity::problem, "TCP does not pass to port 41000");
}

TEST(CheckPath, Losses) {
  PathFacts f = good();
  there(f).lost = 1;
  expect(finding(f, "loss-there"), Severity::note, "1 of 256 datagrams were lost (0.4 %)");
  there(f).lost = 26;
  expect(finding(f, "loss-there"), Severity::problem, "(10.2 %)");
}

TEST(CheckPath, Translation) {
  PathFacts f = good();
  f.own_seen = "203.0.113.9:61000";
  expect(finding(f, "address"), Severity::problem,
         "this host's TCP 192.0.2.1:40000 is 203.0.113.9:61000 to the peer");
  f = good();
  f.peer_own = "10.0.0.7:4349";
  expect(finding(f, "address"), Severity::problem,
         "the peer's 10.0.0.7:4349 is 192.0.2.7:4349 to this host");
}

TEST(CheckPath, FragmentsAndMarks) {
  PathFacts f = good();
  there(f).fragments = false;
  there(f).tos = 0x28;
  expect(finding(f, "fragments"), Severity::note, "(to the peer)");
  expect(finding(f, "marks"), Severity::note, "DSCP 10, ECN 2 arrives there as DSCP 10, ECN 0");
}

TEST(CheckPath, AnExaminationThatEndedEarlyClaimsNothing) {
  PathFacts f = good();
  f.failed = "it closed the connection";
  f.segments = {};
  f.datagrams = {};
  const auto findings = check_path(f);
  EXPECT_FALSE(all_well(findings));
  expect(finding(f, "listener"), Severity::untested, "it closed the connection");
  expect(finding(f, "tcp-there"), Severity::untested, "");
}

TEST(PathNotTested, NamesWhatWasNotTestedAndTheRemedy) {
  const Finding f = path_not_tested("192.0.2.7", 4349, "Connection refused");
  expect(f, Severity::untested, "192.0.2.7 port 4349 (Connection refused). Not tested: ");
  EXPECT_THAT(f.remedy, HasSubstr("weft doctor --listen"));
}

}  // namespace
}  // namespace weft::doctor
