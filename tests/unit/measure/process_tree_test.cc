#include "measure/process_tree.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/measure/fake_tree.h"

namespace weft::measure {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr pid_t kMeter = 10;
constexpr double kTicks = 100;

TEST(ParseStat, TakesNamesWithBlanksAndBrackets) {
  const auto line = parse_stat(
      "42 (a) b (c)) S 7 42 42 0 -1 4194304 99 0 0 0 150 25 30 5 20 0 1 0 123456 1000 200");
  ASSERT_TRUE(line);
  EXPECT_EQ(line->name, "a) b (c)");
  EXPECT_EQ(line->state, 'S');
  EXPECT_EQ(line->parent, 7);
  EXPECT_EQ(line->user, 150U);
  EXPECT_EQ(line->system, 25U);
  EXPECT_EQ(line->children_user, 30U);
  EXPECT_EQ(line->children_system, 5U);
  EXPECT_EQ(line->start, 123456U);
  EXPECT_FALSE(parse_stat("42 a S 7"));
  EXPECT_FALSE(parse_stat("42 (a) S 7 1 2"));
}

TEST(ParseStatus, AZombieHasNoMemory) {
  const StatusLines lines = parse_status(
      "Name:\tx\nVmHWM:\t    1740 kB\nVmRSS:\t     900 kB\nvoluntary_ctxt_switches:\t12\n"
      "nonvoluntary_ctxt_switches:\t3\n");
  EXPECT_EQ(lines.peak_bytes, 1740U * 1024);
  EXPECT_EQ(lines.resident_bytes, 900U * 1024);
  EXPECT_EQ(lines.voluntary, 12U);
  EXPECT_EQ(lines.involuntary, 3U);
  EXPECT_FALSE(parse_status("Name:\tx\nState:\tZ (zombie)\n").peak_bytes);
}

// A meter, process 10, with a command of one process, 20.
class ProcessTreeTest : public ::testing::Test {
 protected:
  struct Process {
    pid_t parent = kMeter;
    std::string name = "command";
    char state = 'S';
    uint64_t user = 0;
    uint64_t children_user = 0;
    uint64_t start = 1;
    std::string children;
    uint64_t peak_kb = 0;
    uint64_t rss_kb = 0;
  };
  ProcessTreeTest() { process(kMeter, {.parent = 1, .name = "weft"}); }

  static std::string line(pid_t id, const Process& p) {
    return fmt::format("{} ({}) {} {} 1 1 0 -1 0 0 0 0 0 {} 0 {} 0 20 0 1 0 {} 0 0", id, p.name,
                       p.state, p.parent, p.user, p.children_user, p.start);
  }
  // With its first thread alone, which has all its time.
  void process(pid_t pid, const Process& p) {
    proc_.write(fmt::format("{}/stat", pid), line(pid, p));
    thread(pid, pid, p);
  }
  void thread(pid_t pid, pid_t thread, const Process& p, uint64_t switches = 0) {
    const std::string folder = fmt::format("{}/task/{}/", pid, thread);
    proc_.write(folder + "stat", line(thread, p));
    proc_.write(folder + "children", p.children);
    proc_.write(folder + "schedstat", fmt::format("{} 0 0", p.user * 10'000'000));
    std::string status = fmt::format("voluntary_ctxt_switches:\t{}\n", switches);
    if (p.peak_kb > 0) status += fmt::format("VmHWM:\t{} kB\nVmRSS:\t{} kB\n", p.peak_kb, p.rss_kb);
    proc_.write(folder + "status", status);
  }
  void gone(pid_t pid) { proc_.remove(std::to_string(pid)); }
  void gone(pid_t pid, pid_t thread) { proc_.remove(fmt::format("{}/task/{}", pid, thread)); }
  ProcessTree tree() { return {ProcessFiles{proc_.root()}, kMeter, kTicks}; }
  ProcessTree tree_of_command() {
    ProcessTree t = tree();
    t.begin(20);
    return t;
  }
  static std::vector<std::string> names(const ProcessTree& tree) {
    std::vector<std::string> all;
    for (const ThreadUsage& t : tree.threads()) {
      all.push_back(fmt::format("{} {} {:.2f}", t.process, t.name, t.cpu_s));
    }
    return all;
  }

  FakeTree proc_;
};

TEST_F(ProcessTreeTest, FollowsChildrenOfEachThread) {
  process(20, {.user = 100, .children = ""});
  thread(20, 21, {.name = "worker", .user = 300, .children = "30"});
  process(30, {.parent = 20, .name = "child", .user = 200, .children = "40"});
  process(40, {.parent = 30, .name = "grandchild", .user = 50});
  process(50, {.parent = 1, .name = "other", .user = 900});
  ProcessTree t = tree_of_command();
  t.look();
  EXPECT_THAT(names(t), ElementsAre("command worker 3.00", "child child 2.00",
                                    "command command 1.00", "grandchild grandchild 0.50"));
}

TEST_F(ProcessTreeTest, WithoutListsOfChildrenLooksAtAll) {
  process(20, {});
  process(30, {.parent = 20, .name = "child", .user = 7});
  for (const char* pid : {"10", "20", "30"})
    proc_.remove(fmt::format("{0}/task/{0}/children", pid));
  ProcessTree t = tree_of_command();
  t.look();
  EXPECT_THAT(names(t), ElementsAre("child child 0.07", "command command 0.00"));
}

TEST_F(ProcessTreeTest, KeepsWhatAnEndedThreadHadAtTheLastLook) {
  process(20, {});
  thread(20, 21, {.name = "worker", .user = 40}, 5);
  ProcessTree t = tree_of_command();
  t.look();
  thread(20, 21, {.name = "worker", .user = 60}, 9);
  t.look();
  gone(20, 21);
  t.look();
  const auto threads = t.threads();
  ASSERT_EQ(threads.size(), 2U);
  EXPECT_DOUBLE_EQ(threads[0].cpu_s, 0.6);
  EXPECT_EQ(threads[0].voluntary, 9U);
}

TEST_F(ProcessTreeTest, TellsTwoThreadsOfOneNumberApart) {
  process(20, {});
  thread(20, 21, {.name = "first", .user = 40, .start = 5});
  ProcessTree t = tree_of_command();
  t.look();
  thread(20, 21, {.name = "second", .user = 30, .start = 6});
  t.look();
  EXPECT_THAT(names(t),
              ElementsAre("command first 0.40", "command second 0.30", "command command 0.00"));
}

TEST_F(ProcessTreeTest, CountsThoseThatWereWaitedForWithTheirParents) {
  process(20, {.user = 10, .children_user = 70, .children = "30"});
  process(30, {.parent = 20, .user = 5, .children_user = 1});
  ProcessTree t = tree_of_command();
  t.look();
  EXPECT_DOUBLE_EQ(t.cpu_s(), 0.86);
}

TEST_F(ProcessTreeTest, OrphansAreTheCommandsButEarlierChildrenAreNot) {
  process(kMeter, {.parent = 1, .name = "weft", .children = "15"});
  process(15, {.name = "earlier", .user = 900});
  ProcessTree t = tree_of_command();
  process(kMeter, {.parent = 1, .name = "weft", .children = "15 20 30 31"});
  process(20, {});
  process(30, {.name = "orphan", .user = 20});
  process(31, {.name = "dead", .state = 'Z', .user = 10});
  t.look();
  EXPECT_THAT(names(t),
              ElementsAre("orphan orphan 0.20", "dead dead 0.10", "command command 0.00"));
  EXPECT_THAT(t.ended_orphans(), ElementsAre(31));
}

TEST_F(ProcessTreeTest, AProcessThatAListMissesIsStillThere) {
  process(20, {.children = "30"});
  process(30, {.parent = 20, .name = "child", .user = 10});
  ProcessTree t = tree_of_command();
  t.look();
  process(20, {.children = ""});
  process(30, {.parent = 20, .name = "child", .user = 15});
  t.look();
  EXPECT_DOUBLE_EQ(t.cpu_s(), 0.15);
  // But not another one that has its number by now.
  process(30, {.parent = 1, .name = "stranger", .user = 99, .start = 77});
  t.look();
  EXPECT_DOUBLE_EQ(t.cpu_s(), 0);
}

TEST_F(ProcessTreeTest, PeakIsOfOneProcessAndOfAllTogether) {
  process(20, {.children = "30", .peak_kb = 500, .rss_kb = 400});
  process(30, {.parent = 20, .peak_kb = 300, .rss_kb = 250});
  ProcessTree t = tree_of_command();
  t.look();
  process(20, {.children = "30", .peak_kb = 500, .rss_kb = 100});
  t.look();
  EXPECT_EQ(t.peak_bytes(), 500U * 1024);
  EXPECT_EQ(t.peak_sum_bytes(), 650U * 1024);
}

TEST_F(ProcessTreeTest, SurvivorsAreThoseThatStillRun) {
  process(20, {.children = "30"});
  process(30, {.parent = 20, .name = "server", .user = 25, .children_user = 5});
  ProcessTree t = tree_of_command();
  t.look();
  gone(20);
  process(kMeter, {.parent = 1, .name = "weft", .children = "30 31"});
  process(30, {.name = "server", .user = 35, .children_user = 5});
  process(31, {.name = "dead", .state = 'Z', .user = 500});
  const auto [usage, survivors] = t.survivors();
  EXPECT_DOUBLE_EQ(usage.user_s, 0.4);
  EXPECT_THAT(survivors, ElementsAre("server"));
}

TEST_F(ProcessTreeTest, OfTheEndedSurvivorsCountWhatSomebodyElseIsToWaitFor) {
  ProcessTree t = tree();
  process(kMeter, {.parent = 1, .name = "weft", .children = "30 31"});
  process(30, {.name = "server", .user = 35, .children = "32"});
  process(31, {.name = "dead", .state = 'Z', .user = 500});
  process(32, {.parent = 30, .name = "unreaped", .state = 'Z', .user = 20});
  thread(32, 32, {.parent = 30, .name = "unreaped", .state = 'Z', .user = 20}, 3);
  const auto [usage, survivors] = t.survivors();
  EXPECT_DOUBLE_EQ(usage.user_s, 0.55);
  EXPECT_EQ(usage.voluntary, 3U);
  EXPECT_THAT(survivors, ElementsAre("server"));
  // The meter has its time from wait4(2).
  EXPECT_THAT(t.ended_orphans(), ElementsAre(31));
}

TEST_F(ProcessTreeTest, VeryManyThreadsAreCountedTogether) {
  process(20, {});
  constexpr size_t kMost = 20;
  ProcessTree t{ProcessFiles{proc_.root()}, kMeter, kTicks, kMost};
  t.begin(20);
  constexpr unsigned kBatch = 5;
  unsigned all = 0;
  while (all <= 2 * kMost) {
    for (unsigned i = 0; i < kBatch; ++i) {
      thread(20, 1000 + i, {.name = "short", .user = 1, .start = 5 + all});
      ++all;
    }
    t.look();
  }
  unsigned counted = 0;
  double cpu_s = 0;
  for (const ThreadUsage& one : t.threads()) {
    if (one.name != "short") continue;
    counted += one.threads;
    cpu_s += one.cpu_s;
  }
  EXPECT_EQ(counted, all);
  EXPECT_NEAR(cpu_s, all * 0.01, 1e-6);
  EXPECT_LE(t.threads().size(), kMost + 1);
}

TEST_F(ProcessTreeTest, WithoutACommandSeesNothing) {
  ProcessTree t = tree();
  t.look();
  EXPECT_THAT(t.threads(), IsEmpty());
}

}  // namespace
}  // namespace weft::measure
