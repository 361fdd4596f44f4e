// Whole tests of a path, between network namespaces in which something is wrong.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <optional>

#include "doctor/path_checks.h"
#include "doctor/path_probe.h"
#include "doctor/route.h"
#include "listener_thread.h"
#include "tests/support/two_hosts.h"

namespace weft::doctor {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

port::Address at(const std::string& host, uint16_t port) {
  std::string error;
  return addresses_of(host, port, error).at(0);
}

std::string read_all(int fd) {
  std::string text;
  std::array<char, 4096> piece{};
  for (ssize_t n = 0; (n = ::read(fd, piece.data(), piece.size())) > 0;) {
    text.append(piece.data(), static_cast<size_t>(n));
  }
  return text;
}

// What `body` finds, in a process that may leave this network. Nothing: not here.
std::optional<json> apart(const std::function<std::optional<std::vector<Finding>>()>& body) {
  std::array<int, 2> ends{};
  EXPECT_EQ(::pipe(ends.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    int result = 1;
    try {
      const auto findings = body();
      const std::string text = findings ? as_json(*findings).dump() : "";
      const bool told =
          ::write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size());
      result = !findings ? test::kNotHere : told ? 0 : 1;
    } catch (const std::exception& e) {
      std::fprintf(stderr, "%s\n", e.what());
    }
    ::_exit(result);
  }
  ::close(ends[1]);
  const std::string text = read_all(ends[0]);
  ::close(ends[0]);
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == test::kNotHere) return std::nullopt;
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  return json::parse(text, nullptr, false);
}

// The far one listens, the near one examines.
template <class Network>
std::vector<Finding> probe_far(const Network& network, const std::string& far) {
  const ListenerThread listener([&] { network.enter_far(); });
  return check_path(probe_path(at(far, listener->port()), "near_end"));
}

struct Judged {
  std::string severity;
  std::string sentence;
};
Judged judged(const json& report, const std::string& check) {
  for (const auto& f : report.at("findings")) {
    if (f.at("check") == check) return {f.at("severity"), f.at("sentence")};
  }
  return {"missing", report.dump(2)};
}
void expect(const json& report, const std::string& check, const std::string& severity,
            const std::string& words) {
  const Judged j = judged(report, check);
  EXPECT_EQ(j.severity, severity) << check << ": " << j.sentence;
  EXPECT_THAT(j.sentence, HasSubstr(words)) << check;
}

constexpr const char* kFar = "192.0.2.2";  // of TwoHosts
constexpr const char* kSkip = "no namespaces and firewalls can be made here";

TEST(Path, AGoodOne) {
  const auto report = apart([]() -> std::optional<std::vector<Finding>> {
    const test::TwoHosts hosts;
    if (!hosts.made() || !hosts.set_mtu(9000)) return std::nullopt;
    return probe_far(hosts, kFar);
  });
  if (!report) GTEST_SKIP() << kSkip;
  EXPECT_EQ(report->at("problems"), 0) << report->dump(2);
  EXPECT_EQ(report->at("notes"), 0) << report->dump(2);
  EXPECT_EQ(report->at("untested"), 0) << report->dump(2);
  expect(*report, "tcp-there", "ok", "packets of 9000 bytes");
  expect(*report, "tcp-back", "ok", "packets of 9000 bytes");
  expect(*report, "udp-there", "ok", "up to 9000 bytes");
  expect(*report, "udp-back", "ok", "up to 9000 bytes");
}

TEST(Path, OneOfIpv6DropsLargePackets) {
  const auto report = apart([]() -> std::optional<std::vector<Finding>> {
    const test::TwoHosts hosts;
    if (!hosts.made() || !hosts.set_mtu(9000) ||
        !hosts.filter_far(test::TwoHosts::Hook::input, "meta length \\> 4000 drop")) {
      return std::nullopt;
    }
    return probe_far(hosts, "fe80::2%wire");
  });
  if (!report) GTEST_SKIP() << kSkip;
  expect(*report, "address", "ok", "[fe80::2]");
  expect(*report, "tcp-there", "problem", "those of 4000 bytes pass");
  expect(*report, "udp-there", "problem", "packets of more than 4000 bytes vanish");
  expect(*report, "tcp-back", "ok", "packets of 9000 bytes");
  expect(*report, "udp-back", "ok", "up to 9000 bytes");
}

TEST(Path, ItsMiddleDropsLargePacketsAndSaysNothing) {
  const auto report = apart([]() -> std::optional<std::vector<Finding>> {
    const test::NarrowPath path(false);
    if (!path.made()) return std::nullopt;
    return probe_far(path, test::NarrowPath::kFar);
  });
  if (!report) GTEST_SKIP() << kSkip;
  for (const std::string way : {"there", "back"}) {
    expect(*report, "tcp-" + way, "problem", "full segments (packets of 9000 bytes) vanish");
    expect(*report, "tcp-" + way, "problem", "those of 1500 bytes pass");
    expect(*report, "udp-" + way, "problem", "packets of more than 1500 bytes vanish");
    expect(*report, "loss-" + way, "ok", "256 of 256");
  }
  expect(*report, "fragments", "untested", "");
}

TEST(Path, ItsMiddleSaysWhatItDrops) {
  const auto report = apart([]() -> std::optional<std::vector<Finding>> {
    const test::NarrowPath path(true);
    if (!path.made()) return std::nullopt;
    return probe_far(path, test::NarrowPath::kFar);
  });
  if (!report) GTEST_SKIP() << kSkip;
  expect(*report, "tcp-there", "ok", "the path carries packets of 1500 bytes");
  expect(*report, "tcp-back", "ok", "the path carries packets of 1500 bytes");
  expect(*report, "udp-there", "note", "up to 1500 bytes pass, the interface allows 9000");
  expect(*report, "udp-back", "note", "up to 1500 bytes pass, the interface allows 9000");
  EXPECT_EQ(report->at("problems"), 0) << report->dump(2);
}

TEST(Path, OneWayDropsLargePackets) {
  const auto report = apart([]() -> std::optional<std::vector<Finding>> {
    const test::TwoHosts hosts;
    if (!hosts.made() || !hosts.set_mtu(9000) ||
        !hosts.filter_far(test::TwoHosts::Hook::input, "meta length \\> 1400 drop")) {
      return std::nullopt;
    }
    return probe_far(hosts, kFar);
  });
  if (!report) GTEST_SKIP() << kSkip;
  expect(*report, "tcp-there", "problem", "those of 1400 bytes pass");
  expect(*report, "udp-there", "problem", "packets of more than 1400 bytes vanish");
  expect(*report, "tcp-back", "ok", "packets of 9000 bytes");
  expect(*report, "udp-back", "ok", "up to 9000 bytes");
}

TEST(Path, NoUdpPasses) {
  const auto report = apart([]() -> std::optional<std::vector<Finding>> {
    const test::TwoHosts hosts;
    if (!hosts.made() || !hosts.filter_far(test::TwoHosts::Hook::input, "meta l4proto udp drop")) {
      return std::nullopt;
    }
    return probe_far(hosts, kFar);
  });
  if (!report) GTEST_SKIP() << kSkip;
  expect(*report, "udp-there", "problem", "no datagram arrives");
  expect(*report, "udp-back", "untested", "small datagrams pass");
  expect(*report, "tcp-there", "ok", "1500");
  expect(*report, "tcp-back", "ok", "1500");
  expect(*report, "ports", "note", "TCP passes");
}

TEST(Path, UdpPassesOneWay) {
  const auto report = apart([]() -> std::optional<std::vector<Finding>> {
    const test::TwoHosts hosts;
    if (!hosts.made() || !hosts.filter_far(test::TwoHosts::Hook::output, "meta l4proto udp drop")) {
      return std::nullopt;
    }
    return probe_far(hosts, kFar);
  });
  if (!report) GTEST_SKIP() << kSkip;
  expect(*report, "udp-there", "ok", "up to 1500 bytes");
  expect(*report, "loss-there", "ok", "256 of 256");
  expect(*report, "udp-back", "problem", "no datagram arrives");
}

TEST(Path, EveryFifthDatagramIsLost) {
  const auto report = apart([]() -> std::optional<std::vector<Finding>> {
    const test::TwoHosts hosts;
    if (!hosts.made() || !hosts.filter_far(test::TwoHosts::Hook::input,
                                           "meta l4proto udp numgen inc mod 5 == 0 drop")) {
      return std::nullopt;
    }
    return probe_far(hosts, kFar);
  });
  if (!report) GTEST_SKIP() << kSkip;
  expect(*report, "loss-there", "problem", " of 256 datagrams were lost (");
  expect(*report, "loss-back", "ok", "256 of 256");
  expect(*report, "udp-there", "ok", "up to 1500 bytes");
}

TEST(Path, AnAddressTranslation) {
  const auto report = apart([]() -> std::optional<std::vector<Finding>> {
    const test::NarrowPath path(true);
    if (!path.made() || !path.translate()) return std::nullopt;
    return probe_far(path, test::NarrowPath::kFar);
  });
  if (!report) GTEST_SKIP() << kSkip;
  expect(*report, "address", "problem", "this host's TCP 192.0.2.1:");
  expect(*report, "address", "problem", "is 198.51.100.1:");
  expect(*report, "udp-back", "note", "up to 1500 bytes");
}

TEST(Path, TheSecondOfTwoAddressesLeadsThere) {
  const auto report = apart([]() -> std::optional<std::vector<Finding>> {
    const test::TwoHosts hosts;
    // The one with the default route is GID 0.
    if (!hosts.made() ||
        std::system("ip link add other type veth peer name end && ip link set end up && ip address "
                    "add 198.51.100.1/24 dev other && "
                    "ip link set other up && ip route add default dev other") != 0) {
      return std::nullopt;
    }
    return std::vector{check_route(gather_route(at(kFar, 1)))};
  });
  if (!report) GTEST_SKIP() << kSkip;
  expect(*report, "route", "note", "from 192.0.2.1 (wire, MTU 1500), GID index 1");
  expect(*report, "route", "note", "index 0, 198.51.100.1");
}

}  // namespace
}  // namespace weft::doctor
