#include "engine/memory_handlers.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <deque>
#include <vector>

#include "engine/engine.h"

namespace weft::engine {
namespace {

using namespace std::chrono_literals;

struct Handler final : EventHandler {
  bool try_receive(Token&) override {
    ++asked;
    while (Engine::clock() < busy_until) {
    }
    return has;
  }
  void use_descriptor(Token&, bool on) override { descriptor = on; }
  void on_ready(Token&, bool, bool) override {}
  void on_deadline(Token&) override {}
  void on_doorbell(Token&) override {}
  void abandon_in_child() override {}
  int asked = 0;
  Time busy_until;
  bool has = false;
  bool descriptor = true;
};

class MemoryHandlersTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto e = Engine::create(0);
    ASSERT_TRUE(e.ok());
    engine = std::move(*e);
    hold.emplace(engine->hold());
  }
  Token& token() { return hold->token(); }
  void poll(unsigned times) {
    for (unsigned i = 0; i < times; ++i) handlers.polled();
  }
  bool only_ask(bool may = true) {
    return handlers.only_ask(token(), [&] { return may; });
  }
  std::unique_ptr<Engine> engine;
  std::optional<Hold> hold;
  MemoryHandlers handlers;
  std::deque<Handler> made = std::deque<Handler>(257);
};

TEST_F(MemoryHandlersTest, EachIsAskedAndOneMovesIt) {
  handlers.add(token(), made[0]);
  handlers.add(token(), made[1]);
  EXPECT_FALSE(handlers.ask(token()));
  made[0].has = true;
  EXPECT_TRUE(handlers.ask(token()));
  EXPECT_EQ(made[0].asked, 2);
  EXPECT_EQ(made[1].asked, 2);
}

// As large transfers do.
TEST_F(MemoryHandlersTest, WhereEachTakesLongTheyHaveTheirTurnsOneBehindTheOther) {
  for (size_t i = 0; i < 3; ++i) {
    made[i].has = true;
    made[i].busy_until = token().now() + 1ms;
    handlers.add(token(), made[i]);
  }
  const auto asked = [&] { return std::vector{made[0].asked, made[1].asked, made[2].asked}; };
  EXPECT_TRUE(handlers.ask(token()));
  EXPECT_EQ(asked(), (std::vector{1, 0, 0}));
  EXPECT_TRUE(handlers.ask(token()));
  EXPECT_EQ(asked(), (std::vector{1, 1, 0}));
  EXPECT_TRUE(handlers.ask(token()));
  EXPECT_EQ(asked(), (std::vector{1, 1, 1}));
  EXPECT_TRUE(handlers.ask(token()));
  EXPECT_EQ(asked(), (std::vector{2, 1, 1}));
}

TEST_F(MemoryHandlersTest, OneThatGoesIsAskedNoMore) {
  handlers.add(token(), made[0]);
  handlers.add(token(), made[1]);
  handlers.remove(made[0]);
  handlers.remove(made[0]);
  (void)handlers.ask(token());
  EXPECT_EQ(made[0].asked, 0);
  EXPECT_EQ(made[1].asked, 1);
  handlers.remove(made[1]);
  EXPECT_FALSE(handlers.any());
}

TEST_F(MemoryHandlersTest, AsLongAsItsWordIsTheSameNothingIsAskedFor) {
  std::atomic<uint64_t> word{7};
  handlers.add(token(), made[0]);
  handlers.ask_after(made[0], {&word, 7});
  handlers.ask_after(made[1], {&word, 7});  // is not asked at all
  EXPECT_FALSE(handlers.ask(token()));
  EXPECT_EQ(made[0].asked, 0);
  word = 8;
  (void)handlers.ask(token());
  EXPECT_EQ(made[0].asked, 1);
  handlers.ask_after(made[0], {&word, 8});
  handlers.ask_after(made[0], {});
  (void)handlers.ask(token());
  EXPECT_EQ(made[0].asked, 2) << "without a word nobody knows";
}

// The last one takes the place of one that goes, with its word.
TEST_F(MemoryHandlersTest, EachKeepsItsWordWhenOthersGo) {
  std::array<std::atomic<uint64_t>, 3> words{};
  for (size_t i = 0; i < words.size(); ++i) {
    handlers.add(token(), made[i]);
    handlers.ask_after(made[i], {&words[i], 0});
  }
  handlers.remove(made[0]);
  words[0] = words[2] = 1;
  (void)handlers.ask(token());
  EXPECT_EQ(made[0].asked, 0);
  EXPECT_EQ(made[1].asked, 0);
  EXPECT_EQ(made[2].asked, 1);
  handlers.ask_after(made[2], {&words[2], 1});
  handlers.remove(made[1]);
  (void)handlers.ask(token());
  EXPECT_EQ(made[2].asked, 1);
  words[2] = 2;
  (void)handlers.ask(token());
  EXPECT_EQ(made[2].asked, 2);
}

TEST_F(MemoryHandlersTest, TwiceIsOnce) {
  handlers.add(token(), made[0]);
  handlers.add(token(), made[0]);
  (void)handlers.ask(token());
  EXPECT_EQ(made[0].asked, 1);
}

TEST_F(MemoryHandlersTest, AfterManyPollsTheDescriptorsNeedNotTell) {
  handlers.add(token(), made[0]);
  poll(3);
  EXPECT_FALSE(handlers.polled_for_long());
  poll(1);
  EXPECT_TRUE(handlers.polled_for_long());
  EXPECT_FALSE(only_ask(false)) << "somebody sleeps";
  EXPECT_TRUE(handlers.all_are_heard());
  EXPECT_TRUE(only_ask());
  EXPECT_FALSE(handlers.all_are_heard());
  EXPECT_FALSE(made[0].descriptor);
  handlers.hear_all(token());
  EXPECT_TRUE(made[0].descriptor);
  EXPECT_TRUE(handlers.all_are_heard());
  EXPECT_FALSE(handlers.polled_for_long()) << "the polls begin anew";
}

// To change over costs something for each of them.
TEST_F(MemoryHandlersTest, TheMoreThereAreTheMorePollsItTakes) {
  for (size_t i = 0; i < 40; ++i) handlers.add(token(), made[i]);
  poll(13);
  EXPECT_FALSE(handlers.polled_for_long());
  poll(1);
  EXPECT_TRUE(handlers.polled_for_long());
  for (size_t i = 40; i < 256; ++i) handlers.add(token(), made[i]);
  EXPECT_FALSE(handlers.polled_for_long());
  poll(50);
  EXPECT_TRUE(handlers.polled_for_long());
}

TEST_F(MemoryHandlersTest, OneThatComesLaterIsAsTheOthers) {
  handlers.add(token(), made[0]);
  poll(64);
  ASSERT_TRUE(only_ask());
  handlers.add(token(), made[1]);
  EXPECT_FALSE(made[1].descriptor);
}

TEST_F(MemoryHandlersTest, TheOneThatIsSilentForLongestMakesRoom) {
  for (size_t i = 0; i < 256; ++i) handlers.add(token(), made[i]);
  poll(64);
  ASSERT_TRUE(only_ask());
  handlers.add(token(), made[0]);  // heard of again
  handlers.add(token(), made[256]);
  EXPECT_TRUE(made[1].descriptor) << "nobody asks it now";
  (void)handlers.ask(token());
  EXPECT_EQ(made[1].asked, 0);
  EXPECT_EQ(made[0].asked, 1);
  EXPECT_EQ(made[256].asked, 1);
}

TEST_F(MemoryHandlersTest, SocketsAreAskedEveryNowAndThen) {
  handlers.add(token(), made[0]);
  EXPECT_FALSE(handlers.sockets_can_wait(Time::from_ns(1'000'000))) << "all are heard";
  poll(64);
  ASSERT_TRUE(only_ask());
  Time now = Time::from_ns(2'000'000);
  EXPECT_FALSE(handlers.sockets_can_wait(now)) << "a pause";
  int waited = 0;
  while (handlers.sockets_can_wait(now)) ++waited;
  EXPECT_EQ(waited, 63);
  EXPECT_TRUE(handlers.sockets_can_wait(now));
  now = now + 51us;
  EXPECT_FALSE(handlers.sockets_can_wait(now));
  handlers.ask_sockets_next();
  EXPECT_FALSE(handlers.sockets_can_wait(now));
}

}  // namespace
}  // namespace weft::engine
