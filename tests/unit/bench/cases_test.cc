#include "bench/cases.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "kit/failure.h"

namespace weft::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;

std::vector<std::string> names_of(const std::vector<Spec>& cases) {
  std::vector<std::string> names;
  for (const Spec& spec : cases) names.push_back(spec.name);
  return names;
}

constexpr Suite kSuites[] = {Suite::rc,   Suite::many,  Suite::uc,  Suite::ud,
                             Suite::loss, Suite::chunk, Suite::sdp, Suite::rd};

CaseChoice suite_of(Suite suite) {
  CaseChoice choice;
  choice.suite = suite;
  return choice;
}

TEST(MakeCases, HaveNamesOfTheirOwn) {
  for (const Suite suite : kSuites) {
    for (const LossBy by : {LossBy::fault, LossBy::nft}) {
      CaseChoice choice = suite_of(suite);
      choice.loss_by = by;
      const auto names = names_of(make_cases(choice));
      EXPECT_FALSE(names.empty());
      EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), names.size());
    }
  }
}

// What a stream has in flight follows from its share of the link: with 100 Mb/s, 10 ms each way and
// a queue of 40 ms that is 750 KB for all.
TEST(MakeCases, StreamsBesideTcp) {
  CaseChoice choice = suite_of(Suite::rd);
  choice.link = true;
  choice.link_mbps = 100;
  choice.delays = {10};
  choice.beside = {1, 5, 50};
  const auto cases = make_cases(choice);
  EXPECT_THAT(
      names_of(cases),
      ElementsAre("tcp/16K/100Mb/delay-10ms/beside-1", "rc-udp/16K/100Mb/delay-10ms/beside-1",
                  "tcp/16K/100Mb/delay-10ms/beside-5", "rc-udp/16K/100Mb/delay-10ms/beside-5",
                  "tcp/16K/100Mb/delay-10ms/beside-50", "rc-udp/16K/100Mb/delay-10ms/beside-50"));
  std::vector<uint32_t> depths;
  for (const Spec& spec : cases) {
    EXPECT_EQ(spec.channels, spec.operation == Operation::write);
    EXPECT_EQ(spec.link_mbps, 100);
    EXPECT_EQ(spec.delay_ms, 10);
    if (spec.channels) depths.push_back(spec.depth);
  }
  EXPECT_EQ(cases[4].flows, 50U);
  EXPECT_THAT(depths, ElementsAre(64, 18, 4));
}

// Cold memory is no cache's: each side's regions are larger than any message, and those of its
// baseline as large.
TEST(MakeCases, ColdMemoryHasCasesOfItsOwn) {
  CaseChoice choice = suite_of(Suite::rc);
  choice.same_host = true;
  choice.sizes = {16384, 65536};
  choice.only = {"*/cold"};
  const auto cases = make_cases(choice);
  EXPECT_THAT(names_of(cases),
              ElementsAre("tcp/64K/cold", "pull/64K/cold", "write/64K/cold", "read/64K/cold"));
  for (const Spec& spec : cases) {
    EXPECT_EQ(slots_of(spec) * spec.size, 64U << 20);
    EXPECT_EQ(spec.baseline, spec.operation == Operation::tcp_stream ? "" : "tcp/64K/cold");
  }
}

TEST(MakeCases, LossIsMadeByOneMeansAlone) {
  CaseChoice choice = suite_of(Suite::loss);
  choice.losses = {3};
  choice.gbps = 2;
  for (const Spec& spec : make_cases(choice)) {
    EXPECT_EQ(spec.fault, "loss:0.03,way:out,seed:1");
    EXPECT_EQ(spec.loss, 0);
    EXPECT_EQ(spec.gbps, spec.operation == Operation::read ? 0 : 2);
  }
  choice.loss_by = LossBy::nft;
  for (const Spec& spec : make_cases(choice)) {
    EXPECT_TRUE(spec.fault.empty());
    EXPECT_DOUBLE_EQ(spec.loss, 0.03);
  }
}

TEST(MakeCases, DatagramsOfAStreamHaveRoomForMoreThanTheirHeader) {
  const auto datagrams_of = [](uint64_t size) {
    CaseChoice choice = suite_of(Suite::loss);
    choice.loss_by = LossBy::nft;
    choice.sizes = {size};
    const auto specs = make_cases(choice);
    return std::count_if(specs.begin(), specs.end(),
                         [](const Spec& s) { return s.operation == Operation::udp_stream; });
  };
  EXPECT_EQ(datagrams_of(1), 0);
  EXPECT_EQ(datagrams_of(kUdpHeader), 0);
  EXPECT_GT(datagrams_of(kUdpHeader + 1), 0);
  EXPECT_GT(datagrams_of(kLargestDatagram), 0);
  EXPECT_EQ(datagrams_of(kLargestDatagram + 1), 0);
}

TEST(MakeCases, DelaysComeWithAndWithoutLosses) {
  CaseChoice choice = suite_of(Suite::rd);
  choice.sizes = {1 << 20};
  choice.losses = {0, 0.1};
  choice.delays = {0.1, 20};
  choice.only = {"rd/*ms*", "rc-udp/*ms*"};
  const auto cases = make_cases(choice);
  EXPECT_THAT(names_of(cases),
              ElementsAre("tcp/1M", "rc-udp/1M/delay-0.1ms", "rd/1M/delay-0.1ms",
                          "rc-udp/1M/delay-0.1ms/loss-0.1%", "rd/1M/delay-0.1ms/loss-0.1%",
                          "rc-udp/1M/delay-20ms", "rd/1M/delay-20ms",
                          "rc-udp/1M/delay-20ms/loss-0.1%", "rd/1M/delay-20ms/loss-0.1%"));
  EXPECT_EQ(cases[1].fault, "delay:100us,way:out,seed:1");
  EXPECT_EQ(cases[8].fault, "delay:20000us,loss:0.001,way:out,seed:1");
}

TEST(MakeCases, CoverWhatTheTargetsNeed) {
  EXPECT_THAT(names_of(make_cases({})),
              IsSupersetOf({"tcp/64K", "tcp/1M", "write/64K/crc", "write/1M/crc", "write/1M/no-crc",
                            "write-list/64/crc", "tcp-ping-pong/64/spin", "send-ping-pong/64/poll",
                            "write-ping-pong/64/poll", "idle", "memory"}));
}

TEST(MakeCases, BaselineRunsBeforeWhatIsComparedWithIt) {
  for (const Suite suite : kSuites) {
    std::set<std::string> seen;
    for (const Spec& spec : make_cases(suite_of(suite))) {
      EXPECT_TRUE(spec.baseline.empty() || seen.contains(spec.baseline)) << spec.name;
      seen.insert(spec.name);
    }
  }
}

TEST(MakeCases, BaselineMovesMessagesOfTheSameSizeAndWaitsAlike) {
  const auto cases = make_cases({});
  for (const Spec& spec : cases) {
    const auto baseline = std::find_if(
        cases.begin(), cases.end(), [&](const Spec& other) { return other.name == spec.baseline; });
    if (baseline == cases.end()) continue;
    EXPECT_TRUE(is_tcp(baseline->operation)) << spec.name;
    EXPECT_EQ(baseline->size, spec.size) << spec.name;
    EXPECT_EQ(baseline->wait, spec.wait) << spec.name;
  }
}

TEST(MakeCases, SizesAreThoseOfTheBandwidthCases) {
  CaseChoice choice;
  choice.sizes = {100, 2097152};
  choice.only = {"tcp/*", "write/*/crc"};
  EXPECT_THAT(names_of(make_cases(choice)),
              ElementsAre("tcp/100", "write/100/crc", "tcp/2M", "write/2M/crc"));
}

TEST(MakeCases, ChosenOnesBringTheirBaseline) {
  CaseChoice choice;
  choice.only = {"send/64K/no-crc"};
  EXPECT_THAT(names_of(make_cases(choice)), ElementsAre("tcp/64K", "send/64K/no-crc"));
}

TEST(MakeCases, ChunksAreComparedWithTcpThatDoesTheSame) {
  CaseChoice choice = suite_of(Suite::chunk);
  choice.sizes = {100'000};
  choice.piece = 30'000;
  const auto cases = make_cases(choice);
  EXPECT_THAT(names_of(cases),
              ElementsAre("tcp/100000", "chunk/100000/no-crc", "chunk/100000/crc"));
  EXPECT_EQ(cases[0].operation, Operation::tcp_chunk);
  for (const Spec& spec : cases) EXPECT_EQ(spec.piece, 30'000U);
  EXPECT_FALSE(cases[1].crc);
  EXPECT_TRUE(cases[2].crc);
  EXPECT_EQ(cases[2].baseline, "tcp/100000");
  EXPECT_EQ(cases[2].depth, 10U);  // two chunks of four Writes and a Send
}

TEST(MakeCases, ChunkOfMoreWritesThanAQueueTakesIsRefused) {
  CaseChoice choice = suite_of(Suite::chunk);
  choice.piece = 64;
  EXPECT_THROW(make_cases(choice), kit::Failure);
}

TEST(MakeCases, BareLoopsMoveWhatTheWritesOfTheirSizeMove) {
  CaseChoice choice;
  choice.sizes = {4096, 65536};
  choice.only = {"bare/*"};
  const auto cases = make_cases(choice);
  EXPECT_THAT(names_of(cases), ElementsAre("tcp/64K", "bare/64K/crc", "bare/64K/no-crc"));
  EXPECT_TRUE(cases[1].crc);
  EXPECT_FALSE(cases[2].crc);
}

TEST(MakeCases, ManyConnectionsAreComparedWithAsManySockets) {
  const auto cases = make_cases(suite_of(Suite::many));
  for (const Spec& spec : cases) {
    EXPECT_EQ(spec.connections % spec.busy, 0U) << spec.name;
    if (spec.baseline.empty()) continue;
    const auto baseline = std::find_if(
        cases.begin(), cases.end(), [&](const Spec& other) { return other.name == spec.baseline; });
    ASSERT_NE(baseline, cases.end());
    EXPECT_EQ(baseline->connections, spec.connections) << spec.name;
    EXPECT_EQ(baseline->busy, spec.busy) << spec.name;
  }
}

TEST(MakeCases, UnknownNameChoosesNothing) {
  CaseChoice choice;
  choice.only = {"writes"};
  EXPECT_THAT(make_cases(choice), IsEmpty());
}

TEST(MakeCases, RequestsOfAListFitIntoWhatMayBeInFlight) {
  for (const Spec& spec : make_cases({})) EXPECT_LE(spec.list, spec.depth) << spec.name;
}

TEST(Spec, SurvivesTheWayToTheOtherProcess) {
  const Spec spec{.name = "a",
                  .group = Group::latency,
                  .operation = Operation::write_ping_pong,
                  .size = 5'000'000'000,
                  .crc = false,
                  .wait = Wait::poll,
                  .depth = 7,
                  .list = 3,
                  .connections = 9,
                  .busy = 3,
                  .baseline = "b",
                  .piece = 16384};
  const auto copy = nlohmann::json::parse(nlohmann::json(spec).dump()).get<Spec>();
  EXPECT_EQ(nlohmann::json(copy), nlohmann::json(spec));
  EXPECT_EQ(copy.operation, Operation::write_ping_pong);
  EXPECT_EQ(copy.size, 5'000'000'000U);
  EXPECT_FALSE(copy.crc);
  EXPECT_EQ(copy.piece, 16384U);
  EXPECT_EQ(copy.busy, 3U);
}

TEST(SizeName, IsShort) {
  EXPECT_EQ(size_name(1), "1");
  EXPECT_EQ(size_name(1023), "1023");
  EXPECT_EQ(size_name(1024), "1K");
  EXPECT_EQ(size_name(1025), "1025");
  EXPECT_EQ(size_name(65536), "64K");
  EXPECT_EQ(size_name(1048576), "1M");
  EXPECT_EQ(size_name(1048576 + 1024), "1025K");
}

}  // namespace
}  // namespace weft::bench
