#include "engine/wake_up_time.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <set>
#include <utility>

namespace weft::engine {
namespace {

Time at(int64_t ns) {
  return Time::from_ns(ns);
}

// The kernel's timer, and whatever other threads do while a call is on its way to it.
struct Kernel {
  Time set = Time::never();
  std::function<void()> meanwhile;
  int calls = 0;
};
struct SetTimer {
  void operator()(Time when) const {
    ++kernel->calls;
    if (auto others = std::exchange(kernel->meanwhile, {})) others();
    kernel->set = when;
  }
  Kernel* kernel;
};

class WakeUpTimeTest : public testing::Test {
 protected:
  bool rings(Time now) {
    if (kernel_.set > now) return false;
    kernel_.set = Time::never();
    wake_up_.rang(now);
    return true;
  }
  Kernel kernel_;
  WakeUpTime<SetTimer> wake_up_{SetTimer{&kernel_}};
};

TEST_F(WakeUpTimeTest, IsOnlyBroughtForward) {
  wake_up_.no_later_than(at(100));
  wake_up_.no_later_than(at(200));
  EXPECT_EQ(kernel_.set, at(100));
  EXPECT_EQ(kernel_.calls, 1);
  wake_up_.no_later_than(at(50));
  EXPECT_EQ(kernel_.set, at(50));
  EXPECT_TRUE(rings(at(60)));
  wake_up_.no_later_than(at(200));
  EXPECT_EQ(kernel_.set, at(200));
}

TEST_F(WakeUpTimeTest, ALateCallForALaterTimeIsFollowedByOneForTheEarlier) {
  kernel_.meanwhile = [&] { wake_up_.no_later_than(at(50)); };
  wake_up_.no_later_than(at(100));
  EXPECT_EQ(kernel_.set, at(50));
}

// The call for 100 reaches the kernel after the timer has rung and is set to 200: it rings at once,
// and 200 is in the kernel no more.
TEST_F(WakeUpTimeTest, ALateCallForATimeThatIsOverDoesNotLoseTheNext) {
  kernel_.meanwhile = [&] {
    wake_up_.rang(at(150));
    wake_up_.no_later_than(at(200));
  };
  wake_up_.no_later_than(at(100));
  EXPECT_TRUE(rings(at(151)));
  EXPECT_EQ(kernel_.set, at(200));
}

TEST_F(WakeUpTimeTest, ARingAMomentTooEarlyIsNotTheLast) {
  wake_up_.no_later_than(at(100));
  kernel_.set = Time::never();
  wake_up_.rang(at(99));
  EXPECT_EQ(kernel_.set, at(100));
}

TEST_F(WakeUpTimeTest, IsPutOffByWhoKnowsBetter) {
  wake_up_.no_later_than(at(100));
  wake_up_.put_off(at(200));
  EXPECT_EQ(kernel_.set, at(200));
  // Not brought forward that way, nor set where nothing was.
  wake_up_.put_off(at(150));
  EXPECT_EQ(kernel_.set, at(200));
  EXPECT_TRUE(rings(at(201)));
  wake_up_.put_off(at(300));
  EXPECT_TRUE(kernel_.set.is_never());
}

TEST_F(WakeUpTimeTest, AnEarlierTimeThatComesWhileItIsPutOffStands) {
  wake_up_.no_later_than(at(100));
  kernel_.meanwhile = [&] { wake_up_.no_later_than(at(150)); };
  wake_up_.put_off(at(200));
  EXPECT_EQ(kernel_.set, at(150));
}

TEST_F(WakeUpTimeTest, ARingWhileItIsPutOffIsFollowedByTheNext) {
  wake_up_.no_later_than(at(100));
  kernel_.meanwhile = [&] { EXPECT_TRUE(rings(at(101))); };
  wake_up_.put_off(at(200));
  EXPECT_EQ(kernel_.set, at(200));
}

// Threads in the middle of each other's calls, at random: the kernel never rings later than any of
// them wants that has not been rung for.
TEST_F(WakeUpTimeTest, NoOrderOfCallsLosesATime) {
  std::mt19937 random{4};
  int64_t now = 0;
  std::set<int64_t> wanted;
  int rung = 0;
  bool ringing = false;      // the helper is one thread
  bool putting_off = false;  // one thread at a time
  std::function<void()> act = [&] {
    now += random() % 3;
    if (random() % 2 == 0) kernel_.meanwhile = act;
    if (random() % 3 == 0 && !ringing) {
      ringing = true;
      if (rings(at(now))) {
        ++rung;
        // As after a turn: what is due is done, and the helper says when the next is.
        wanted.erase(wanted.begin(), wanted.upper_bound(now));
        if (!wanted.empty()) wake_up_.no_later_than(at(*wanted.begin()));
      }
      ringing = false;
    } else if (random() % 4 == 0 && !putting_off) {
      putting_off = true;
      // Not beyond what is wanted: who puts it off knows that.
      wake_up_.put_off(wanted.empty() ? at(now + 20) : at(*wanted.begin()));
      putting_off = false;
    } else {
      const int64_t when = now + static_cast<int64_t>(random() % 20);
      wanted.insert(when);
      wake_up_.no_later_than(at(when));
    }
    kernel_.meanwhile = {};
  };
  for (int i = 0; i < 200'000; ++i) {
    act();
    const Time first = wanted.empty() ? Time::never() : at(*wanted.begin());
    ASSERT_LE(kernel_.set, first) << "after " << i;
  }
  EXPECT_GT(rung, 1000);
}

}  // namespace
}  // namespace weft::engine
