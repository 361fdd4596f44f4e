#include "bench/targets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/bench/run_example.h"

namespace weft::bench {
namespace {

Standing standing_of(const std::vector<CaseResult>& cases, const std::string& id) {
  const auto all = standings(cases, Suite::rc, "loopback");
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Standing& s) { return s.target.id == id; });
  if (found == all.end()) throw std::out_of_range(id);
  return *found;
}

CaseResult single_case(const char* name, Group group, Operation operation,
                       const Measurement& measurement) {
  return {.spec = {.name = name, .group = group, .operation = operation, .size = 64},
          .repetitions = {measurement}};
}

TEST(Standings, RatioIsTheMedianOfTheRepetitionsRatios) {
  const auto standing = standing_of(example_run().cases, "write_1m_bandwidth");
  // 38/40, 80/80 and 49.5/50.
  ASSERT_TRUE(standing.value);
  EXPECT_NEAR(standing.value->median, 0.99, 1e-9);
  EXPECT_NEAR(standing.value->min, 0.95, 1e-9);
  EXPECT_NEAR(standing.value->max, 1.0, 1e-9);
}

TEST(Standings, LargerIsBetterForBandwidth) {
  auto cases = example_run().cases;
  // Against 40, 80 and 50: one of a half, two of 0.8.
  cases[2] = stream_case("write/1M/no-crc", Operation::write, "tcp/1M", {20, 64, 40}, 0.1);
  const auto standing = standing_of(cases, "write_1m_bandwidth");
  EXPECT_EQ(standing.met(), false);
  EXPECT_EQ(standing.reaches_aim(), false);
}

TEST(Standings, SmallerIsBetterForCpu) {
  const auto standing = standing_of(example_run().cases, "write_cpu");
  ASSERT_TRUE(standing.value);
  EXPECT_NEAR(standing.value->median, 1.4, 1e-9);
  EXPECT_EQ(standing.met(), true);
  EXPECT_EQ(standing.reaches_aim(), false);
}

TEST(Standings, CrcIsComparedWithoutIt) {
  const auto standing = standing_of(example_run().cases, "crc_bandwidth");
  ASSERT_TRUE(standing.value);
  EXPECT_NEAR(standing.value->median, 0.8, 1e-9);
}

TEST(Standings, RateIsInMillions) {
  Measurement m;
  m.initiator = {.messages = 9'000'000, .seconds = 1};
  const auto standing = standing_of(
      {single_case("write-list/64/crc", Group::rate, Operation::write, m)}, "write_rate");
  ASSERT_TRUE(standing.value);
  EXPECT_NEAR(standing.value->median, 9, 1e-9);
  EXPECT_EQ(standing.met(), true);
  EXPECT_EQ(standing.reaches_aim(), false);
}

TEST(Standings, RoundTripOfTheTargetsOwnLimitIsMet) {
  Measurement tcp;
  tcp.initiator = {.messages = 1, .seconds = 1, .extra = {{"rtt_us", 5.0}}};
  Measurement send = tcp;
  send.initiator.extra["rtt_us"] = 6.0;
  const std::vector<CaseResult> cases{
      single_case("tcp-ping-pong/64/spin", Group::latency, Operation::tcp_ping_pong, tcp),
      single_case("send-ping-pong/64/poll", Group::latency, Operation::send_ping_pong, send)};
  EXPECT_EQ(standing_of(cases, "send_round_trip").met(), true);
  EXPECT_EQ(standing_of(cases, "write_round_trip").met(), std::nullopt);
}

TEST(Standings, IdleHasNoAim) {
  Measurement m;
  m.initiator = {.seconds = 1, .library_cpu_s = 2e-3};
  const auto standing =
      standing_of({single_case("idle", Group::rest, Operation::idle, m)}, "idle_cpu");
  EXPECT_EQ(standing.met(), false);
  EXPECT_EQ(standing.reaches_aim(), std::nullopt);
}

TEST(Standings, UnmeasuredIsNeitherMetNorMissed) {
  for (const Standing& standing : standings({}, Suite::rc, "loopback")) {
    EXPECT_EQ(standing.value, std::nullopt) << standing.target.id;
    EXPECT_EQ(standing.met(), std::nullopt) << standing.target.id;
    EXPECT_EQ(standing.reaches_aim(), std::nullopt) << standing.target.id;
  }
}

TEST(Standings, AimsAreHarderThanRequirements) {
  for (const Standing& standing : standings({}, Suite::rc, "loopback")) {
    if (!standing.target.aim) continue;
    if (standing.target.at_most) {
      EXPECT_LT(*standing.target.aim, standing.target.required) << standing.target.id;
    } else {
      EXPECT_GT(*standing.target.aim, standing.target.required) << standing.target.id;
    }
  }
}

}  // namespace
}  // namespace weft::bench
