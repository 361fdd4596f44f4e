// Which class and processors the helper has, and that a thread with a real-time priority gets an
// engine that one without is at.
#include "engine/helper_schedule.h"

#include <atomic>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include "engine_fixture.h"
#include "tests/support/scheduling.h"

namespace weft::engine {
namespace {

using test::become_fifo;
using test::comes_true;
using test::has_real_time_priority;

constexpr unsigned kNumber = 77;  // of no other engine in this program

// Made by a thread that has done `first`; what its helper has in the end.
template <class First>
Schedule of_helper_made_by(First&& first) {
  Schedule seen;
  std::thread([&] {
    first();
    auto engine = std::move(*Engine::create(kNumber));
    // It takes its name when it is through with its schedule.
    std::optional<pid_t> helper;
    EXPECT_TRUE(comes_true([&] { return (helper = test::thread_called("weft/77")).has_value(); }));
    if (helper) seen = schedule_of(*helper);
  }).join();
  return seen;
}

void keep_to_one_processor() {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<size_t>(sched_getcpu()), &set);
  ASSERT_EQ(sched_setaffinity(0, sizeof set, &set), 0);
}

TEST(HelperSchedule, HasTheProcessorsOfTheProcess) {
  const Schedule process = schedule_at_load();
  const Schedule helper = of_helper_made_by(keep_to_one_processor);
  EXPECT_EQ(helper.cpus, process.cpus);
}

TEST(HelperSchedule, IsNotIdleWhereTheProcessIsNot) {
  if (schedule_at_load().policy == SCHED_IDLE) GTEST_SKIP() << "this process is of SCHED_IDLE";
  const Schedule helper = of_helper_made_by([] {
    const sched_param p{};
    ASSERT_EQ(sched_setscheduler(0, SCHED_IDLE, &p), 0);
  });
  EXPECT_EQ(helper.policy, schedule_at_load().policy);
}

TEST(HelperSchedule, KeepsTheClassOfAnOrdinaryThread) {
  if (schedule_at_load().real_time()) GTEST_SKIP() << "this process has a real-time priority";
  EXPECT_EQ(of_helper_made_by([] {}).policy, schedule_at_load().policy);
  const Schedule helper = of_helper_made_by([] {
    const sched_param p{};
    ASSERT_EQ(sched_setscheduler(0, SCHED_BATCH, &p), 0);
  });
  EXPECT_EQ(helper.policy, SCHED_BATCH);
}

TEST(HelperSchedule, StandsAboveAMakerWithARealTimePriority) {
  if (!test::real_time_is_allowed()) GTEST_SKIP() << "no real-time priorities are allowed here";
  const Schedule helper = of_helper_made_by([] { ASSERT_TRUE(become_fifo(50)); });
  EXPECT_EQ(helper.policy, SCHED_FIFO);
  EXPECT_EQ(helper.priority, 51);
  // None is above it.
  EXPECT_EQ(of_helper_made_by([] { ASSERT_TRUE(become_fifo(99)); }).priority, 99);
}

// On one processor, where a maker that never sleeps would keep a helper of its own priority from
// raising itself.
TEST(HelperSchedule, StandsThereWhenTheEngineIsMade) {
  if (!test::real_time_is_allowed()) GTEST_SKIP() << "no real-time priorities are allowed here";
  std::thread([] {
    keep_to_one_processor();
    ASSERT_TRUE(become_fifo(50));
    std::set<pid_t> before;
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task"))
      before.insert(std::stoi(task.path().filename()));
    const auto engine = std::move(*Engine::create(kNumber));
    int above = 0;
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
      const pid_t thread = std::stoi(task.path().filename());
      if (!before.contains(thread) && schedule_of(thread).priority == 51) ++above;
    }
    EXPECT_EQ(above, 1);
  }).join();
}

// So that the kernel gives it none for that of its maker.
TEST(HelperSchedule, StandsAboveAMakerThatHandsNoPriorityOn) {
  if (!test::real_time_is_allowed()) GTEST_SKIP() << "no real-time priorities are allowed here";
  const Schedule helper = of_helper_made_by([] {
    const sched_param p{.sched_priority = 20};
    ASSERT_EQ(sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &p), 0);
  });
  EXPECT_EQ(helper.policy, SCHED_FIFO);
  EXPECT_EQ(helper.priority, 21);
}

class RealTime : public EngineTest {
 protected:
  void SetUp() override {
    if (!test::real_time_is_allowed()) GTEST_SKIP() << "no real-time priorities are allowed here";
  }
  // A poll that nobody else was in the way of.
  bool polled() {
    const uint64_t before = engine->counters().polls.value();
    engine->progress();
    return engine->counters().polls.value() != before;
  }
  static std::thread with_priority(int priority, std::function<void()> work) {
    return std::thread([priority, work = std::move(work)] {
      ASSERT_TRUE(become_fifo(priority));
      work();
    });
  }
};

TEST_F(RealTime, TheHelperIsRaisedAboveAThreadThatPolls) {
  std::optional<pid_t> helper;
  ASSERT_TRUE(comes_true([&] { return (helper = test::thread_called("weft/0")).has_value(); }));
  struct {
    int poller, helper;
  } const cases[] = {{30, 31}, {20, 31}, {40, 41}};
  for (const auto& c : cases) {
    with_priority(c.poller, [&] {
      while (!polled()) {
      }
    }).join();
    EXPECT_TRUE(has_real_time_priority(*helper, c.helper)) << c.poller;
  }
}

// Each of these would keep a processor from a holder of an ordinary class, by which the engine is
// never let go where there is one processor.
TEST_F(RealTime, AThreadThatWaitsForTheEngineLetsItsHolderRun) {
  std::optional<Hold> hold{engine->hold()};
  std::thread waiter = with_priority(30, [&] { Hold h = engine->hold(); });
  const pid_t holder = test::this_thread_id();
  EXPECT_TRUE(comes_true([&] { return has_real_time_priority(holder, 30); }));
  hold.reset();
  waiter.join();
}

TEST_F(RealTime, AThreadThatPollsLetsTheHolderRun) {
  std::atomic<bool> stop{false};
  std::optional<Hold> hold{engine->hold()};
  std::thread poller = with_priority(30, [&] {
    while (!stop) engine->progress();
  });
  const pid_t holder = test::this_thread_id();
  EXPECT_TRUE(comes_true([&] { return has_real_time_priority(holder, 30); }));
  hold.reset();
  stop = true;
  poller.join();
}

}  // namespace
}  // namespace weft::engine
