#include "engine/doorbells.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <thread>
#include <vector>

namespace weft::engine {
namespace {

class Door final : public EventHandler {
 public:
  void on_ready(Token&, bool, bool) override {}
  void on_deadline(Token&) override {}
  void on_doorbell(Token&) override {}
  void abandon_in_child() override {}
  std::atomic<uint64_t> work{0};
  uint64_t seen = 0;
};

TEST(Doorbells, EachIsServedOnce) {
  Doorbells bells;
  Door a;
  Door b;
  EXPECT_FALSE(bells.any());
  bells.ring(a);
  bells.ring(b);
  bells.ring(a);
  EXPECT_TRUE(bells.any());
  std::multiset<EventHandler*> served;
  bells.drain([&](EventHandler& s) { served.insert(&s); });
  EXPECT_EQ(served, (std::multiset<EventHandler*>{&a, &b}));
  EXPECT_FALSE(bells.any());
  bells.drain([](EventHandler&) { FAIL(); });
}

TEST(Doorbells, OneMayRingAgainWhileItIsServed) {
  Doorbells bells;
  Door a;
  bells.ring(a);
  int times = 0;
  bells.drain([&](EventHandler& s) {
    if (++times == 1) bells.ring(s);
  });
  EXPECT_EQ(times, 1) << "at the next look";
  EXPECT_TRUE(bells.any());
  bells.drain([&](EventHandler&) { ++times; });
  EXPECT_EQ(times, 2);
}

TEST(Doorbells, AForgottenOneIsNotServed) {
  Doorbells bells;
  std::vector<Door> doors(4);
  std::multiset<EventHandler*> served;
  const auto serve = [&] { bells.drain([&](EventHandler& s) { served.insert(&s); }); };
  for (Door& door : doors) bells.ring(door);
  bells.forget(doors[1]);
  bells.forget(doors[1]);
  EXPECT_TRUE(bells.any());
  serve();
  EXPECT_EQ(served, (std::multiset<EventHandler*>{&doors[0], &doors[2], &doors[3]}));
  // It may be used again.
  bells.ring(doors[1]);
  serve();
  EXPECT_EQ(served.count(&doors[1]), 1U);
}

// The others stay, those that rang before the drain and those that ring meanwhile.
TEST(Doorbells, OneMayBeForgottenWhileAnotherIsServed) {
  Doorbells bells;
  std::vector<Door> doors(4);
  for (size_t i = 0; i < 3; ++i) bells.ring(doors[i]);
  std::vector<EventHandler*> served;
  bells.drain([&](EventHandler& s) {
    served.push_back(&s);
    if (served.size() > 1) return;
    bells.ring(s);
    bells.ring(doors[3]);
    bells.forget(doors[1]);
  });
  EXPECT_EQ(served, (std::vector<EventHandler*>{&doors[2], &doors[0]}));
  served.clear();
  bells.drain([&](EventHandler& s) { served.push_back(&s); });
  EXPECT_EQ((std::set<EventHandler*>{served.begin(), served.end()}),
            (std::set<EventHandler*>{&doors[2], &doors[3]}));
  EXPECT_FALSE(bells.any());
}

// Work that was there before the bell is seen by whoever answers it.
TEST(Doorbells, NoBellIsLostBetweenThreads) {
  constexpr uint64_t kEach = 20'000;
  constexpr size_t kDoors = 5;
  Doorbells bells;
  std::vector<std::unique_ptr<Door>> doors;
  for (size_t i = 0; i < kDoors; ++i) doors.push_back(std::make_unique<Door>());
  std::atomic<int> ringing{3};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      for (uint64_t i = 0; i < kEach; ++i) {
        Door& d = *doors[i % kDoors];
        d.work.fetch_add(1, std::memory_order_relaxed);
        bells.ring(d);
      }
      ringing.fetch_sub(1);
    });
  }
  const auto answer = [&] {
    bells.drain([](EventHandler& s) {
      auto& d = static_cast<Door&>(s);
      d.seen = d.work.load(std::memory_order_relaxed);
    });
  };
  while (ringing.load() > 0) {
    answer();
    std::this_thread::yield();
  }
  answer();
  for (std::thread& t : threads) t.join();
  answer();
  for (const auto& d : doors) EXPECT_EQ(d->seen, 3 * kEach / kDoors);
}

}  // namespace
}  // namespace weft::engine
