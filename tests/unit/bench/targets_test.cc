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

// A case of the loss suite: 100 messages of 10 datagrams in each repetition, and what came of them.
struct Came {
  double datagrams;
  double bytes;
  double messages;
};
CaseResult loss_case(const char* name, Operation operation, const std::vector<Came>& repetitions) {
  CaseResult result{
      .spec = {.name = name, .operation = operation, .size = 9500, .service = Service::uc},
      .repetitions = {}};
  for (const Came& c : repetitions) {
    Measurement m;
    m.initiator = {.messages = 100, .seconds = 1, .extra = {{"datagrams_sent", 1000}}};
    m.target.extra = {{"datagrams_received", c.datagrams},
                      {"received_bytes", c.bytes},
                      {"received_messages", c.messages}};
    if (operation == Operation::read) std::swap(m.initiator.extra, m.target.extra);
    result.repetitions.push_back(m);
  }
  return result;
}

Standing of_loss(const std::vector<CaseResult>& cases, const std::string& id) {
  for (const Standing& s : standings(cases, Suite::loss, "veth")) {
    if (s.target.id == id) return s;
  }
  throw std::out_of_range(id);
}

TEST(LossStandings, AWriteMayLackWhatTheLostDatagramsHadRoomFor) {
  // Ten datagrams hold 9500 bytes, so each has room for less than 1056.
  const auto met = [](double datagrams, double bytes) {
    return of_loss({loss_case("uc-write/x/1%", Operation::write, {{datagrams, bytes, 0}})},
                   "uc_write_loss")
        .met();
  };
  EXPECT_EQ(met(1000, 950'000), true);
  EXPECT_EQ(met(990, 950'000 - 10 * 950), true);
  EXPECT_EQ(met(990, 950'000 - 10 * 1050), true);
  EXPECT_EQ(met(990, 950'000 - 10 * 1060), false);
  EXPECT_EQ(met(1000, 950'000 - 2000), false);  // nothing was lost, and something is missing
}

TEST(LossStandings, AMessageMayBeMissingWhereADatagramOfItIs) {
  for (const auto& [operation, id] : {std::pair{Operation::send, "uc_send_loss"},
                                      {Operation::write_immediate, "uc_write_immediate_loss"}}) {
    const auto met = [&](double datagrams, double messages) {
      return of_loss({loss_case("case", operation, {{datagrams, 9500 * messages, messages}})}, id)
          .met();
    };
    EXPECT_EQ(met(1000, 100), true);
    // A hundred of a thousand hit 1 - 0.9^10 of the messages, 65 of 100.
    EXPECT_EQ(met(900, 35), true);
    EXPECT_EQ(met(900, 29), true);
    EXPECT_EQ(met(900, 28), false);
    EXPECT_EQ(met(1000, 98), false);
  }
}

TEST(LossStandings, AReadLacksNothing) {
  const auto met = [](double bytes) {
    return of_loss({loss_case("uc-read/x/10%", Operation::read, {{0, bytes, 100}})}, "uc_read_loss")
        .met();
  };
  EXPECT_EQ(met(950'000), true);
  EXPECT_EQ(met(940'500), false);
}

TEST(LossStandings, TheWorstCaseCountsByItsMedian) {
  const CaseResult good = loss_case("a", Operation::send, {{1000, 0, 100}, {1000, 0, 100}});
  const CaseResult bad =
      loss_case("b", Operation::send, {{1000, 0, 50}, {1000, 0, 100}, {1000, 0, 60}});
  const auto standing = of_loss({good, bad}, "uc_send_loss");
  EXPECT_EQ(standing.met(), false);
  ASSERT_TRUE(standing.value);
  EXPECT_NEAR(standing.value->median, 40, 1e-9);
  EXPECT_NEAR(standing.value->min, 0, 1e-9);
}

TEST(LossStandings, OtherServicesAndWithoutCountersNoneAreNotMeasured) {
  CaseResult rc = loss_case("rc-write/x/1%", Operation::write, {{0, 0, 0}});
  rc.spec.service = Service::rc;
  CaseResult blind = loss_case("uc-write/x/1%", Operation::write, {{0, 0, 0}});
  blind.repetitions[0].initiator.extra.clear();
  EXPECT_EQ(of_loss({rc, blind}, "uc_write_loss").met(), std::nullopt);
}

TEST(Standings, AThreadThatWaitsInsideIsWokenAFewTimes) {
  for (const auto& [switches, met] : {std::pair{12, true}, {700, false}}) {
    CaseResult c = loss_case("write/1M/flood/get-cq-event", Operation::write, {{0, 0, 0}});
    c.repetitions[0].target.extra["own_switches"] = switches;
    const auto all = standings({c}, Suite::uc, "veth");
    const auto it = std::find_if(all.begin(), all.end(), [](const Standing& s) {
      return std::string{s.target.id} == "uc_thread_inside";
    });
    ASSERT_NE(it, all.end());
    ASSERT_TRUE(it->value);
    EXPECT_EQ(it->value->median, switches);
    EXPECT_EQ(it->met(), met);
  }
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
