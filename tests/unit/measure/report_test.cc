#include "measure/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weft::measure {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// 4 GB in 8 s, for 2 s of CPU and 25 W.
Report example() {
  Report r;
  r.command = {"recv", "--all"};
  r.seconds = 8;
  r.looks = 80;
  r.interval_s = 0.1;
  r.usage = {.user_s = 0.5, .system_s = 1.5, .voluntary = 70, .involuntary = 7};
  r.threads = {{.pid = 5, .thread = 6, .process = "recv", .name = "rx", .cpu_s = 1.25}};
  r.peak_bytes = uint64_t{33'000'000};
  r.peak_sum_bytes = 44'000'000;
  r.machine = MachineCpu{.cpus = 2, .user_s = 1, .system_s = 2, .softirq_s = 1, .steal_s = 0.5};
  r.energy = {{.source = "powercap",
               .of = "package and DRAM",
               .joules = 200.0,
               .seconds = 8,
               .watts = 25.0,
               .domains = {{"package-0", Part::package, 150.0}, {"dram", Part::dram, 50.0}}}};
  r.bytes = uint64_t{4'000'000'000};
  r.bytes_from = "--bytes";
  return r;
}

Report without_energy() {
  Report r = example();
  const Unmeasured why{"energy_uj: Permission denied", "run as root"};
  r.energy = {{.source = "powercap",
               .of = "",
               .joules = fail(why),
               .seconds = 0,
               .watts = fail(why),
               .domains = {}}};
  return r;
}

TEST(Figures, FollowFromBytesTimeCpuAndPower) {
  const Report r = example();
  EXPECT_DOUBLE_EQ(*gigabits_per_s(r), 4);
  EXPECT_DOUBLE_EQ(*efficiency(r, 25.0), 4.0 / 25);
  EXPECT_DOUBLE_EQ(*cpu_s_per_gb(r), 0.5);
  EXPECT_DOUBLE_EQ(*machine_cpu_s_per_gb(r), 1);
  EXPECT_DOUBLE_EQ(unseen_cpu_s(r), 0.75);
}

TEST(Figures, OfNoBytesAreUnmeasured) {
  Report r = example();
  r.bytes = uint64_t{0};
  EXPECT_THAT(cpu_s_per_gb(r).error().reason, HasSubstr("no byte was moved"));
  EXPECT_FALSE(efficiency(r, 25.0));
  r.bytes = fail(Unmeasured{"nobody said", "give --bytes"});
  EXPECT_EQ(gigabits_per_s(r).error().remedy, "give --bytes");
}

TEST(Figures, WithoutPowerHaveNoEfficiency) {
  EXPECT_FALSE(efficiency(example(), fail(Unmeasured{"no meter", "buy one"})));
}

TEST(AsJson, HasTheFiguresAndTheirSources) {
  const auto j = as_json(example());
  EXPECT_EQ(j["transfer"]["gbps"], 4);
  EXPECT_EQ(j["transfer"]["efficiency_gbps_per_w"], 0.16);
  EXPECT_EQ(j["transfer"]["cpu_s_per_gb"], 0.5);
  EXPECT_EQ(j["energy"]["source"], "powercap");
  EXPECT_EQ(j["energy"]["of"], "package and DRAM");
  EXPECT_EQ(j["energy"]["sources"][0]["domains"][1]["part"], "dram");
  EXPECT_EQ(j["energy"]["sources"][0]["domains"][1]["joules"], 50);
  EXPECT_EQ(j["machine"]["softirq_s"], 1);
  EXPECT_EQ(j["machine"]["steal_s"], 0.5);
  EXPECT_EQ(j["threads"][0]["tid"], 6);
  EXPECT_EQ(j["memory"]["peak_bytes"], 33'000'000);
}

TEST(AsJson, WhatIsNotMeasuredHasReasonAndRemedyInItsPlace) {
  const auto j = as_json(without_energy());
  EXPECT_EQ(j["energy"]["unmeasured"], "powercap: energy_uj: Permission denied");
  EXPECT_EQ(j["energy"]["remedy"], "run as root");
  EXPECT_FALSE(j["energy"].contains("watts"));
  EXPECT_EQ(j["energy"]["sources"][0]["unmeasured"], "energy_uj: Permission denied");
  EXPECT_EQ(j["transfer"]["efficiency_gbps_per_w"]["remedy"], "run as root");
  EXPECT_EQ(j["transfer"]["gbps"], 4);
}

TEST(AsText, SaysTheFiguresWithTheirUnits) {
  const std::string text = as_text(example());
  for (const char* piece :
       {"2.000 s: user 0.500 s, system 1.500 s; 0.25 CPUs", "1.250 s  6, rx of recv",
        "0.750 s  of threads that ended between two looks",
        "200.000 J, 25.000 W on average: package "
        "and DRAM by powercap",
        "dram: 50.000 J", "4 Gb/s", "0.5 s/GB of the command", "0.16 Gb/s per W", "softirq 1.00",
        "steal 0.50", "33.0 MB"}) {
    EXPECT_THAT(text, HasSubstr(piece));
  }
}

TEST(AsText, SaysWhatIsUnmeasuredAndWhatToDo) {
  const std::string text = as_text(without_energy());
  EXPECT_THAT(text, HasSubstr("powercap unmeasured: energy_uj: Permission denied; run as root"));
  EXPECT_THAT(text, HasSubstr("E          unmeasured"));
  EXPECT_THAT(text, Not(HasSubstr(" 0.000 W")));
}

TEST(AsText, SaysWhySamplesEnd) {
  Report r = example();
  EXPECT_THAT(as_text(r), Not(HasSubstr("samples")));
  r.samples_end = Unmeasured{"no space", "make some"};
  EXPECT_THAT(as_text(r), HasSubstr("samples    unmeasured: no space; make some"));
  EXPECT_EQ(as_json(r)["meter"]["samples"]["unmeasured"], "no space");
}

TEST(AsText, ShowsTheBusiestThreadsAndSumsUpTheOthers) {
  Report r = example();
  r.threads.clear();
  for (int i = 0; i < 13; ++i) {
    r.threads.push_back({.pid = 5, .thread = 6 + i, .process = "recv", .name = "t", .cpu_s = 0.1});
  }
  EXPECT_THAT(as_text(r), HasSubstr("0.300 s  3 others"));
}

}  // namespace
}  // namespace weft::measure
