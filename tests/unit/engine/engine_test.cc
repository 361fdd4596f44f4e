#include "engine/engine.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "tests/unit/engine/engine_fixture.h"

namespace weft::engine {
namespace {

TEST_F(EngineTest, OneHolderAtATime) {
  {
    const Hold first = engine->hold();
    std::thread([&] { EXPECT_FALSE(engine->try_hold()); }).join();
  }
  Hold second = engine->hold();
  EXPECT_EQ(&second.token().runtime(), engine.get());
  // Read once, good for the whole turn.
  const Time now = second.token().now();
  EXPECT_LE(now, Engine::clock());
  EXPECT_EQ(second.token().now(), now);
}

// epoll(7) watches no regular file, as it watches no socket where the user's watches are used up.
TEST_F(EngineTest, AHandlerWhoseDescriptorCannotBeWatchedIsNotTaken) {
  const int file = ::open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  ASSERT_GE(file, 0);
  Listener& other = add(false);
  Hold h = engine->hold();
  EXPECT_THROW(engine->add(h.token(), std::make_unique<Listener>(diary), file, true, false),
               std::bad_alloc);
  EXPECT_EQ(diary.now().deleted, 1);
  EXPECT_THROW(engine->rewatch(h.token(), other, file, true, false), std::bad_alloc);
  EXPECT_EQ(diary.now().deleted, 1);
  // It goes on, with none.
  engine->rewatch(h.token(), other, sockets[0], true, false);
  engine->remove(h.token(), other);
  ::close(file);
}

// Nobody polls: the helper hears the socket.
TEST_F(EngineTest, TheHelperHearsSocketsOfAProgramThatDoesNotPoll) {
  add(true);
  for (int i = 1; i <= 3; ++i) {
    write_byte();
    ASSERT_TRUE(diary.await([&](const Heard& h) { return h.ready >= i; }));
  }
}

TEST_F(EngineTest, AProgramThatPollsHearsThemItself) {
  add(true);
  write_byte();
  while (diary.now().ready == 0) engine->progress();
}

// It is not looked after as closely as others then (SteadyPolicy), but it is; its deadlines too.
TEST_F(EngineTest, WhoPollsForLongAndStopsIsLookedAfter) {
  Listener& s = add(true);
  for (int round = 1; round <= 3; ++round) {
    for (const Time until = Engine::clock() + 80ms; Engine::clock() < until;) engine->progress();
    if (round == 2) {
      Hold h = engine->hold();
      engine->set_deadline(h.token(), s, h.token().now() + 2ms);
    }
    const int before = diary.now().ready;
    write_byte();
    ASSERT_TRUE(diary.await([&](const Heard& h) { return h.ready > before; })) << round;
  }
  EXPECT_TRUE(diary.await([](const Heard& h) { return h.deadline == 1; }));
}

TEST_F(EngineTest, DeadlinesAreKept) {
  Listener& s = add(false);
  {
    Hold h = engine->hold();
    engine->set_deadline(h.token(), s, h.token().now() + 5ms);
  }
  EXPECT_TRUE(diary.await([](const Heard& h) { return h.deadline == 1; }));
  EXPECT_EQ(diary.now().deadline, 1);
}

TEST_F(EngineTest, ABellIsHeardWhoeverHoldsTheEngine) {
  Listener& s = add(false);
  engine->ring(s);
  EXPECT_TRUE(diary.await([](const Heard& h) { return h.doorbell >= 1; }));
  std::thread ringer;
  {
    const Hold h = engine->hold();
    ringer = std::thread([&] { engine->ring(s); });
    // It does not wait for the holder.
    ringer.join();
  }
  EXPECT_TRUE(diary.await([](const Heard& h) { return h.doorbell >= 2; }))
      << "done before the engine was let go";
}

TEST_F(EngineTest, BellsFromManyThreads) {
  Listener& s = add(false);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 2000; ++i) engine->ring(s);
    });
  }
  for (std::thread& t : threads) t.join();
  const int before = diary.now().doorbell;
  EXPECT_GT(before, 0);
  engine->ring(s);
  EXPECT_TRUE(diary.await([&](const Heard& h) { return h.doorbell > before; }));
}

TEST_F(EngineTest, AWaitEndsWithItsEvent) {
  const port::Fd event{::eventfd(0, EFD_CLOEXEC)};
  std::atomic<bool> published{false};
  std::thread publisher([&] {
    published.store(true);
    const uint64_t one = 1;
    ASSERT_EQ(::write(event.get(), &one, sizeof one), static_cast<ssize_t>(sizeof one));
  });
  EXPECT_EQ(engine->wait(event.get(), [&] { return published.load(); }), 0);
  publisher.join();
}

// A thread that sleeps on the engine looks after its sockets.
TEST_F(EngineTest, AWaitHearsTheSockets) {
  add(true);
  const port::Fd event{::eventfd(0, EFD_CLOEXEC)};
  std::thread writer([&] { write_byte(); });
  EXPECT_EQ(engine->wait(event.get(), [&] { return diary.now().ready > 0; }), 0);
  writer.join();
}

TEST_F(EngineTest, ARemovedSourceIsDeletedWhenTheTurnIsOver) {
  Listener& s = add(true);
  s.remove_on_bell = true;
  engine->ring(s);
  EXPECT_TRUE(diary.await([](const Heard& h) { return h.doorbell == 1 && h.deleted == 1; }));
  write_byte();
  engine->progress();
  EXPECT_EQ(diary.now().ready, 0);
}

// Two have rung, and who is served first removes the other one.
TEST_F(EngineTest, ABellOfARemovedSourceIsNotServed) {
  Listener& a = add(false);
  Listener& b = add(false);
  a.other = &b;
  b.other = &a;
  {
    Hold h = engine->hold();
    engine->enqueue(a);
    engine->enqueue(b);
  }
  EXPECT_TRUE(diary.await([](const Heard& h) { return h.deleted == 1; }));
  EXPECT_EQ(diary.now().doorbell, 1);
}

TEST_F(EngineTest, ForgottenSourcesHearNothingMore) {
  Listener own(diary);
  {
    Hold h = engine->hold();
    engine->set_deadline(h.token(), own, h.token().now() + 1ms);
    engine->enqueue(own);
    engine->forget(h.token(), own);
  }
  // Something else is heard, so the engine is alive.
  Listener& other = add(false);
  {
    Hold h = engine->hold();
    engine->set_deadline(h.token(), other, h.token().now() + 5ms);
  }
  EXPECT_TRUE(diary.await([](const Heard& h) { return h.deadline == 1; }));
  EXPECT_EQ(diary.now().doorbell, 0);
}

TEST_F(EngineTest, ForgottenSourcesBelongToTheirOwner) {
  Listener& s = add(true);
  std::unique_ptr<EventHandler> mine;
  {
    Hold h = engine->hold();
    engine->forget(h.token(), s);
    mine.reset(&s);
  }
  EXPECT_EQ(mine.get(), &s);
  write_byte();
  engine->progress();
  EXPECT_EQ(diary.now().ready, 0);
  mine.reset();
  EXPECT_EQ(diary.now().deleted, 1);
}

TEST_F(EngineTest, InterestInWritingAndReading) {
  Listener& s = add(true);
  s.keep_bytes = true;
  {
    Hold h = engine->hold();
    engine->want_read(h.token(), s, false);
  }
  write_byte();
  engine->progress();
  EXPECT_EQ(diary.now().ready, 0);
  {
    Hold h = engine->hold();
    engine->want_write(h.token(), s, true);
  }
  while (diary.now().ready == 0) engine->progress();
  {
    Hold h = engine->hold();
    engine->want_write(h.token(), s, false);
    engine->want_read(h.token(), s, true);
  }
  const int before = diary.now().ready;
  while (diary.now().ready == before) engine->progress();
}

TEST_F(EngineTest, OneThatUsedUpItsBudgetIsLookedAtAgain) {
  Listener& s = add(true);
  s.ask_again = true;
  write_byte();
  while (diary.now().ready == 0) engine->progress();
  const Hold whole_turn = engine->hold();  // it may be the helper's
  EXPECT_GE(diary.now().ready, 2) << "in the same turn, after the others";
}

TEST_F(EngineTest, RetiringMemoryAsksEverySource) {
  add(false);
  add(false);
  engine->retire_memory();
  EXPECT_EQ(diary.now().retired, 2);
}

TEST_F(EngineTest, TheBounceBufferIsThereForWhoeverHoldsIt) {
  Hold h = engine->hold();
  const MutableBytes bounce = engine->bounce(h.token());
  EXPECT_EQ(bounce.size(), Engine::kBounce);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(bounce.data()) % 4096, 2048U) << "docs/design/16";
}

TEST_F(EngineTest, ItEndsWithSourcesInIt) {
  add(true);
  add(false);
  engine.reset();
  EXPECT_EQ(diary.now().deleted, 2);
}

}  // namespace
}  // namespace weft::engine
