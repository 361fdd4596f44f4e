#include "sim/scheduler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <stdexcept>
#include <vector>

#include "base/random.h"
#include "sim/draw.h"
#include "sim/seeds.h"

namespace weft::sim {
namespace {

using namespace std::chrono_literals;
using Order = std::vector<int>;

TEST(Clock, StartsAtOneMicrosecond) {
  Scheduler s;
  EXPECT_EQ(s.now(), Time::from_ns(1000));
  EXPECT_EQ(s.clock().now(), s.now());
}

TEST(Scheduler, RunsInOrderOfTime) {
  Scheduler s;
  Order order;
  s.after(30us, [&] { order.push_back(3); });
  s.after(10us, [&] { order.push_back(1); });
  s.after(20us, [&] { order.push_back(2); });
  EXPECT_EQ(s.pending(), 3U);
  EXPECT_EQ(s.next(), Time::from_ns(11000));
  EXPECT_TRUE(s.step());
  EXPECT_EQ(s.now(), Time::from_ns(11000));
  EXPECT_TRUE(s.run_until_idle(1ms));
  EXPECT_EQ(order, (Order{1, 2, 3}));
  EXPECT_EQ(s.now(), Time::from_ns(31000));
  EXPECT_FALSE(s.step());
  EXPECT_TRUE(s.next().is_never());
}

TEST(Scheduler, EqualTimesRunInOrderOfScheduling) {
  Scheduler s;
  Order order;
  for (int i = 0; i < 50; ++i) {
    s.at(Time::from_ns(5000), [&order, i] { order.push_back(i); });
  }
  ASSERT_TRUE(s.run_until_idle(1ms));
  for (int i = 0; i < 50; ++i) EXPECT_EQ(order[static_cast<size_t>(i)], i);
}

TEST(Scheduler, ThePastMeansNowAndNeverMeansNothing) {
  Scheduler s;
  s.run_for(1ms);
  const Time now = s.now();
  Order order;
  s.at(now, [&] { order.push_back(1); });
  s.at(Time::from_ns(5), [&] { order.push_back(2); });
  const auto nothing = s.at(Time::never(), [] { FAIL(); });
  EXPECT_EQ(s.pending(), 2U);
  EXPECT_FALSE(s.cancel(nothing));
  EXPECT_TRUE(s.run_until_idle(0ns));
  EXPECT_EQ(order, (Order{1, 2})) << "now is behind what is already due now";
  EXPECT_EQ(s.now(), now);
}

TEST(Scheduler, ActionsMayScheduleAndCancel) {
  Scheduler s;
  Order order;
  Scheduler::EventId victim;
  s.after(1us, [&] {
    order.push_back(1);
    s.after(0us, [&] { order.push_back(2); });
    EXPECT_TRUE(s.cancel(victim));
  });
  victim = s.after(2us, [&] { order.push_back(99); });
  s.after(3us, [&] { order.push_back(3); });
  ASSERT_TRUE(s.run_until_idle(1ms));
  EXPECT_EQ(order, (Order{1, 2, 3}));
}

TEST(Scheduler, CancelKnowsWhatHasRun) {
  Scheduler s;
  Scheduler::EventId self;
  self = s.after(1us, [&] { EXPECT_FALSE(s.cancel(self)) << "it runs right now"; });
  ASSERT_TRUE(s.step());
  EXPECT_FALSE(s.cancel(self));
  const auto other = s.after(1us, [] {});
  EXPECT_TRUE(s.cancel(other));
  EXPECT_FALSE(s.cancel(other));
  EXPECT_EQ(s.pending(), 0U);
}

TEST(Scheduler, RunUntilStopsWhereThePredicateHolds) {
  Scheduler s;
  int count = 0;
  for (int i = 1; i <= 10; ++i) s.after(i * 10us, [&] { ++count; });
  EXPECT_TRUE(s.run_until([&] { return count == 4; }, 1s));
  EXPECT_EQ(s.now(), Time::from_ns(41000));
  EXPECT_TRUE(s.run_until([&] { return count == 4; }, 1s)) << "already true: nothing runs";
  EXPECT_EQ(s.pending(), 6U);
}

TEST(Scheduler, RunUntilGivesUpAtTheLimit) {
  Scheduler s;
  int count = 0;
  s.after(10us, [&] { ++count; });
  s.after(20us, [&] { ++count; });
  s.after(21us, [&] { ++count; });
  EXPECT_FALSE(s.run_until([&] { return count == 3; }, 20us)) << "the limit itself still runs";
  EXPECT_EQ(count, 2);
  EXPECT_EQ(s.now(), Time::from_ns(21000));
  EXPECT_FALSE(s.run_until([] { return false; }, 5ms)) << "nothing is left";
  EXPECT_EQ(s.now(), Time::from_ns(21000 + 5000000));
}

TEST(Scheduler, RunForMovesTheClockByThatMuch) {
  Scheduler s;
  int count = 0;
  s.after(3us, [&] { ++count; });
  s.run_for(2us);
  EXPECT_EQ(count, 0);
  s.run_for(2us);
  EXPECT_EQ(count, 1);
  EXPECT_EQ(s.now(), Time::from_ns(5000));
}

TEST(Scheduler, StandstillIsAnErrorAndNoHang) {
  Scheduler s;
  std::function<void()> again = [&] { s.after(0us, again); };
  again();
  EXPECT_THROW(s.run_for(1us), std::runtime_error);
}

TEST(Scheduler, ManyActionsAtOneTimeAreFineWhenTheClockMovesOn) {
  Scheduler s;
  uint64_t count = 0;
  std::function<void()> again = [&] {
    if (++count < Scheduler::kLivelock + 10) s.after(1ns, again);
  };
  again();
  EXPECT_TRUE(s.run_until_idle(1s));
  EXPECT_EQ(count, Scheduler::kLivelock + 10);
}

// Against a model that is slow and simple: a list that is searched for the least.
TEST(Scheduler, AgreesWithAModelUnderRandomUse) {
  for (const uint64_t seed : seeds(50)) {
    WEFT_SIM_TRACE(seed);
    SeededRandom random(seed);
    Scheduler s;
    struct Planned {
      Time at;
      Scheduler::EventId id;
      int name;
    };
    std::vector<Planned> model;
    Order ran;
    Order expected;
    for (int name = 0; name < 300; ++name) {
      switch (draw_below(random, 4)) {
        case 0:
          if (!model.empty()) {
            const auto victim =
                model.begin() + static_cast<ptrdiff_t>(draw_below(random, model.size()));
            EXPECT_TRUE(s.cancel(victim->id));
            model.erase(victim);
          }
          break;
        case 1:
          if (!model.empty()) {
            // min_element takes the first of equals, which was scheduled first.
            const auto least =
                std::min_element(model.begin(), model.end(),
                                 [](const Planned& a, const Planned& b) { return a.at < b.at; });
            expected.push_back(least->name);
            model.erase(least);
            ASSERT_TRUE(s.step());
          }
          break;
        default: {
          const Time when = s.now() + Duration{static_cast<int64_t>(draw_below(random, 20))};
          model.push_back({when, s.at(when, [&ran, name] { ran.push_back(name); }), name});
        }
      }
      ASSERT_EQ(s.pending(), model.size());
    }
    EXPECT_EQ(ran, expected);
  }
}

TEST(Alarm, GoesOffOnce) {
  Scheduler s;
  int count = 0;
  Alarm alarm(s, [&] { ++count; });
  EXPECT_FALSE(alarm.is_set());
  alarm.set(Time::from_ns(5000));
  EXPECT_TRUE(alarm.is_set());
  EXPECT_EQ(alarm.due(), Time::from_ns(5000));
  s.run_for(1ms);
  EXPECT_EQ(count, 1);
  EXPECT_FALSE(alarm.is_set());
}

TEST(Alarm, SettingItAnewMovesIt) {
  Scheduler s;
  std::vector<int64_t> at;
  Alarm alarm(s, [&] { at.push_back(s.now().ns()); });
  alarm.set(Time::from_ns(5000));
  alarm.set(Time::from_ns(9000));
  alarm.set(Time::from_ns(7000));
  EXPECT_EQ(s.pending(), 1U);
  s.run_for(1ms);
  EXPECT_EQ(at, (std::vector<int64_t>{7000}));
}

TEST(Alarm, NeverAndCancelAndDeathSilenceIt) {
  Scheduler s;
  int count = 0;
  {
    Alarm alarm(s, [&] { ++count; });
    alarm.set(Time::from_ns(5000));
    alarm.set(Time::never());
    EXPECT_FALSE(alarm.is_set());
    alarm.set(Time::from_ns(5000));
    alarm.cancel();
    EXPECT_FALSE(alarm.is_set());
    alarm.set(Time::from_ns(5000));
  }
  s.run_for(1ms);
  EXPECT_EQ(count, 0);
}

TEST(Alarm, MaySetItselfAgain) {
  Scheduler s;
  int count = 0;
  Alarm* self = nullptr;
  Alarm alarm(s, [&] {
    if (++count < 5) self->set(s.now() + 10us);
  });
  self = &alarm;
  alarm.set(s.now() + 10us);
  EXPECT_TRUE(s.run_until_idle(1ms));
  EXPECT_EQ(count, 5);
  EXPECT_EQ(s.now(), Time::from_ns(51000));
}

}  // namespace
}  // namespace weft::sim
