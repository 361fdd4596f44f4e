#include "bench/measurement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/figures.h"

namespace weft::bench {
namespace {

using ::testing::Contains;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::Not;
using ::testing::Optional;
using ::testing::Pair;

auto Figure(const char* name, double value) {
  return Contains(Pair(name, DoubleNear(value, value * 1e-9)));
}

// 2 GB in half a second; the initiator uses 0.4 s of CPU, the target 0.3 s.
Measurement two_gigabytes() {
  Measurement m;
  m.initiator = {.messages = 2000, .seconds = 0.5, .cpu_s = 0.4, .switches = 3};
  m.target = {.cpu_s = 0.3, .switches = 7};
  return m;
}

TEST(FiguresOf, StreamHasBandwidthAndCpuPerByte) {
  const Spec spec{.operation = Operation::write, .size = 1'000'000};
  const Figures figures = figures_of(spec, two_gigabytes());
  EXPECT_THAT(figures, Figure("gbps", 32));
  EXPECT_THAT(figures, Figure("messages_per_s", 4000));
  EXPECT_THAT(figures, Figure("tx_s_per_gb", 0.2));
  EXPECT_THAT(figures, Figure("rx_s_per_gb", 0.15));
  EXPECT_THAT(figures, Figure("s_per_gb", 0.35));
  EXPECT_THAT(figures, Figure("switches_per_gb", 5));
  EXPECT_THAT(figures, Figure("cpu_us_per_message", 350));
}

// Of streams beside others each has its own time: the sum of the rates counts.
TEST(FiguresOf, StreamsBesideOthers) {
  Measurement m = two_gigabytes();
  m.initiator.extra = {{kOwnGbps, 24}, {kBesideGbps, 30}, {kLeastOfMean, 0.7}};
  const Spec spec{.operation = Operation::write, .size = 1'000'000, .flows = 2};
  const Figures figures = figures_of(spec, m);
  EXPECT_THAT(figures, Figure("gbps", 24));
  EXPECT_THAT(figures, Figure("beside_gbps", 30));
  EXPECT_THAT(figures, Figure("of_beside", 0.8));
  EXPECT_THAT(figures, Figure("least_of_mean", 0.7));
}

TEST(FiguresOf, ChunkIsAMessageOfAStream) {
  for (const Operation operation : {Operation::chunk, Operation::tcp_chunk}) {
    const Figures figures =
        figures_of({.operation = operation, .size = 1'000'000, .piece = 16384}, two_gigabytes());
    EXPECT_THAT(figures, Figure("gbps", 32));
    EXPECT_THAT(figures, Figure("messages_per_s", 4000));
    EXPECT_THAT(figures, Figure("tx_s_per_gb", 0.2));
    EXPECT_THAT(figures, Figure("rx_s_per_gb", 0.15));
  }
}

TEST(FiguresOf, DataOfReadsComesFromTheTarget) {
  const Spec spec{.operation = Operation::read, .size = 1'000'000};
  const Figures figures = figures_of(spec, two_gigabytes());
  EXPECT_THAT(figures, Figure("tx_s_per_gb", 0.15));
  EXPECT_THAT(figures, Figure("rx_s_per_gb", 0.2));
}

TEST(FiguresOf, StreamTellsWhereTheCpuWent) {
  Measurement m = two_gigabytes();
  m.initiator.system_s = 0.2;
  m.initiator.library_cpu_s = 0.1;
  m.target.system_s = 0.3;
  m.target.peak_bytes = 5e6;
  m.machine = {.watts = std::nullopt, .softirq_s = 0.5, .steal_s = 0.25};
  const Figures figures = figures_of({.operation = Operation::write, .size = 1'000'000}, m);
  EXPECT_THAT(figures, Figure("tx_system_s_per_gb", 0.1));
  EXPECT_THAT(figures, Figure("rx_system_s_per_gb", 0.15));
  EXPECT_THAT(figures, Figure("tx_library_s_per_gb", 0.05));
  EXPECT_THAT(figures, Figure("softirq_s_per_gb", 0.25));
  EXPECT_THAT(figures, Figure("steal_s", 0.25));
  EXPECT_THAT(figures, Figure("target_peak_bytes", 5e6));
  for (const char* unmeasured : {"initiator_peak_bytes", "watts", "gbps_per_w", "joules_per_gb"}) {
    EXPECT_THAT(figures, Not(Contains(Key(unmeasured))));
  }
}

// E = BW / P, and the energy of 10^9 bytes: 32 Gb/s for 20 W, 2 GB for 10 J.
TEST(FiguresOf, StreamHasEfficiencyWherePowerWasMeasured) {
  Measurement m = two_gigabytes();
  m.machine.watts = 20;
  const Figures figures = figures_of({.operation = Operation::write, .size = 1'000'000}, m);
  EXPECT_THAT(figures, Figure("watts", 20));
  EXPECT_THAT(figures, Figure("gbps_per_w", 1.6));
  EXPECT_THAT(figures, Figure("joules_per_gb", 5));
}

TEST(FiguresOf, PingPongHasCpuPerRoundTrip) {
  Measurement m;
  m.initiator = {.messages = 1000, .seconds = 1, .cpu_s = 0.006, .extra = {{"rtt_us", 6.5}}};
  m.target = {.cpu_s = 0.004};
  const Figures figures = figures_of({.operation = Operation::send_ping_pong, .size = 64}, m);
  EXPECT_THAT(figures, Figure("rtt_us", 6.5));
  EXPECT_THAT(figures, Figure("initiator_cpu_us", 6));
  EXPECT_THAT(figures, Figure("target_cpu_us", 4));
  EXPECT_THAT(figures, Not(Contains(Key("gbps"))));
}

TEST(FiguresOf, IdleCountsTheLibraryOfBothEnds) {
  Measurement m;
  m.initiator = {.seconds = 2, .cpu_s = 9, .library_cpu_s = 5e-6};
  m.target = {.cpu_s = 9, .library_cpu_s = 3e-6};
  EXPECT_THAT(figures_of({.operation = Operation::idle}, m), Figure("idle_cpu_us_per_s", 4));
}

TEST(FiguresOf, MemoryIsThatOfTheCostlierEnd) {
  Measurement m;
  m.initiator.extra = {{"user_bytes_per_qp", 3000}, {"kernel_bytes_per_qp", 4000}};
  m.target.extra = {{"user_bytes_per_qp", 3500}, {"kernel_bytes_per_qp", 3900}};
  EXPECT_THAT(figures_of({.operation = Operation::memory}, m), Figure("bytes_per_qp", 7500));
}

// Nothing is measured that `weft bench compare` cannot judge.
TEST(FiguresOf, EachIsInTheTable) {
  Measurement m = two_gigabytes();
  m.machine = {.watts = 50, .softirq_s = 0.5, .steal_s = 0.25};
  for (SideResult* side : {&m.initiator, &m.target}) {
    side->peak_bytes = 1e6;
    for (const char* name :
         {kOwnGbps, kBesideGbps, kLeastOfMean, "user_bytes_per_qp", "kernel_bytes_per_qp",
          "user_bytes_per_peer", "kernel_bytes_per_peer", "sockets", "received"}) {
      side->extra[name] = 1;
    }
  }
  for (const Operation operation :
       {Operation::write, Operation::idle, Operation::memory, Operation::peers, Operation::setup}) {
    const Figures figures = figures_of({.operation = operation, .size = 1'000'000}, m);
    EXPECT_THAT(figures, Not(IsEmpty()));
    for (const auto& [name, value] : figures) EXPECT_NE(find_figure(name), nullptr) << name;
  }
}

TEST(FiguresOf, FailureHasNone) {
  Measurement m = two_gigabytes();
  m.error = "broken";
  EXPECT_THAT(figures_of({.operation = Operation::write, .size = 64}, m), IsEmpty());
  EXPECT_THAT(figures_of({.operation = Operation::write, .size = 64}, Measurement{}), IsEmpty());
}

TEST(CaseResult, SeriesKeepsThePlaceOfAFailure) {
  CaseResult result{.spec = {.operation = Operation::write, .size = 1'000'000},
                    .repetitions = {two_gigabytes(), two_gigabytes(), two_gigabytes()}};
  result.repetitions[1].error = "broken";
  EXPECT_THAT(result.series("gbps"), ElementsAre(Optional(32.0), std::nullopt, Optional(32.0)));
  EXPECT_THAT(result.series("rtt_us"), ElementsAre(std::nullopt, std::nullopt, std::nullopt));
}

TEST(FindCase, GoesByTheName) {
  const std::vector<CaseResult> cases{{.spec = {.name = "a"}, .repetitions = {}},
                                      {.spec = {.name = "b"}, .repetitions = {}}};
  EXPECT_EQ(find_case(cases, "b"), &cases[1]);
  EXPECT_EQ(find_case(cases, "c"), nullptr);
  EXPECT_EQ(find_case(cases, ""), nullptr);
}

}  // namespace
}  // namespace weft::bench
