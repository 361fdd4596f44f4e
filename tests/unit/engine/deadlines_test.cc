#include "engine/deadlines.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>

#include "base/random.h"

namespace weft::engine {
namespace {

class Sleeper final : public EventHandler {
 public:
  void on_ready(Token&, bool, bool) override {}
  void on_deadline(Token&) override {}
  void on_doorbell(Token&) override {}
  void abandon_in_child() override {}
};

constexpr Time at(int64_t ns) {
  return Time::from_ns(ns);
}

TEST(Deadlines, EmptyNeverExpires) {
  Deadlines d;
  EXPECT_TRUE(d.earliest().is_never());
  EXPECT_EQ(d.expire(at(INT64_MAX - 1)), nullptr);
  Sleeper s;
  d.set(s, Time::never());
  EXPECT_EQ(d.size(), 0U);
}

TEST(Deadlines, TheEarliestComesFirst) {
  Deadlines d;
  Sleeper a;
  Sleeper b;
  Sleeper c;
  d.set(b, at(20));
  d.set(a, at(10));
  d.set(c, at(30));
  EXPECT_EQ(d.earliest(), at(10));
  EXPECT_EQ(d.expire(at(9)), nullptr);
  EXPECT_EQ(d.expire(at(25)), &a);
  EXPECT_EQ(d.expire(at(25)), &b);
  EXPECT_EQ(d.expire(at(25)), nullptr);
  EXPECT_EQ(d.expire(at(30)), &c);
  EXPECT_EQ(d.size(), 0U);
}

TEST(Deadlines, OneSourceHasOneDeadline) {
  Deadlines d;
  Sleeper a;
  d.set(a, at(10));
  d.set(a, at(10));
  d.set(a, at(50));
  EXPECT_EQ(d.size(), 1U);
  EXPECT_EQ(d.expire(at(49)), nullptr);
  d.set(a, at(5));
  EXPECT_EQ(d.expire(at(5)), &a);
  d.set(a, at(5));
  d.set(a, Time::never());
  EXPECT_EQ(d.expire(at(100)), nullptr);
}

// Against a multiset, through any mix of settings, changes and expiries.
TEST(Deadlines, BehavesLikeASortedList) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    SeededRandom random(seed);
    Deadlines d;
    std::vector<std::unique_ptr<Sleeper>> handlers;
    for (int i = 0; i < 60; ++i) handlers.push_back(std::make_unique<Sleeper>());
    std::map<EventHandler*, int64_t> when;
    int64_t now = 0;
    for (int step = 0; step < 5000; ++step) {
      EventHandler* s = handlers[random.next() % handlers.size()].get();
      switch (random.next() % 4) {
        case 0:
        case 1: {
          // Few distinct times, so that ties happen.
          const int64_t t = now + static_cast<int64_t>(random.next() % 40);
          d.set(*s, at(t));
          when[s] = t;
          break;
        }
        case 2:
          d.set(*s, Time::never());
          when.erase(s);
          break;
        default: {
          now += static_cast<int64_t>(random.next() % 10);
          std::multiset<int64_t> due;
          for (const auto& [handler, t] : when) {
            if (t <= now) due.insert(t);
          }
          int64_t last = INT64_MIN;
          while (EventHandler* expired = d.expire(at(now))) {
            ASSERT_TRUE(when.contains(expired));
            ASSERT_GE(when[expired], last) << "in order";
            last = when[expired];
            due.erase(due.find(last));
            when.erase(expired);
          }
          ASSERT_TRUE(due.empty()) << "seed " << seed << ": one was forgotten";
        }
      }
      ASSERT_EQ(d.size(), when.size());
      int64_t least = INT64_MAX;
      for (const auto& [handler, t] : when) least = std::min(least, t);
      ASSERT_EQ(d.earliest(), at(least)) << "seed " << seed << " step " << step;
    }
  }
}

}  // namespace
}  // namespace weft::engine
