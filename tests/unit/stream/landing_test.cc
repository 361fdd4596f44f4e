#include "stream/landing.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <thread>

#include "stream/ring_file.h"
#include "tests/support/sanitizer.h"

namespace weft::stream {
namespace {

using SlotState = Landing::SlotState;
constexpr uint32_t kSlots = 4;

// Slots of some pages, and such as have page tables of their own.
class LandingTest : public ::testing::TestWithParam<uint64_t> {
 protected:
  LandingTest()
      : bytes_(Landing::step_of(GetParam() * static_cast<uint64_t>(::getpagesize()))),
        file_(new_ring_file({}, bytes_ * kSlots)),
        seen_(map_shared(file_, 0, bytes_ * kSlots)),
        at_(map_shared_aligned(file_, 0, bytes_ * kSlots, bytes_)),
        landing_(at_, kSlots, bytes_, file_, 0) {}

  // What a library does with a Write, also while memory changes hands beneath it, which
  // ThreadSanitizer would take for a race with mmap().
  [[gnu::no_sanitize("thread")]] void write(uint32_t slot, char what) const {
    auto* word = reinterpret_cast<volatile uint64_t*>(at_ + slot * bytes_);
    for (uint64_t i = 0; i < bytes_ / sizeof(*word); ++i) {
      word[i] = static_cast<unsigned char>(what) * 0x0101'0101'0101'0101U;
    }
  }
  char seen(uint32_t slot) const {
    const char first = static_cast<char>(seen_[slot * bytes_]);
    for (uint64_t i = 0; i < bytes_; ++i) {
      if (static_cast<char>(seen_[slot * bytes_ + i]) != first) return '?';
    }
    return first;
  }

  const uint64_t bytes_;
  port::Fd file_;
  std::byte* seen_;
  std::byte* at_;
  Landing landing_;
};

TEST_P(LandingTest, WritesDoNotReachWhatIsShut) {
  for (uint32_t slot = 0; slot < kSlots; ++slot) write(slot, 'a');
  landing_.shut(1);
  for (uint32_t slot = 0; slot < kSlots; ++slot) write(slot, 'b');
  EXPECT_EQ(seen(0), 'b');
  EXPECT_EQ(seen(1), 'a');
  EXPECT_EQ(seen(2), 'b');
  EXPECT_EQ(landing_.state(1), SlotState::away);
  landing_.shut(1);
  EXPECT_EQ(landing_.state(1), SlotState::shut);
  EXPECT_EQ(static_cast<char>(at_[bytes_]), 'a');
  landing_.open(1);
  write(1, 'c');
  EXPECT_EQ(seen(1), 'c');
}

TEST_P(LandingTest, AWriteThatHasBegunDoesNotReachItEither) {
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> turns{0};
  std::thread writer{[&] {
    for (char c = 0; !stop; ++c, ++turns) write(2, c);
  }};
  for (int i = 0; i < 200; ++i) {
    const uint64_t before = turns;
    while (turns < before + 2) std::this_thread::yield();
    landing_.shut(2);
    const std::string kept{reinterpret_cast<const char*>(seen_ + 2 * bytes_), bytes_};
    const uint64_t shut = turns;
    while (turns < shut + 2) std::this_thread::yield();
    EXPECT_EQ(std::memcmp(kept.data(), seen_ + 2 * bytes_, bytes_), 0) << i;
    landing_.open(2);
  }
  stop = true;
  writer.join();
}

TEST_P(LandingTest, TellsAWriteThatIsAheadFromALateOne) {
  for (const uint32_t slot : {0U, 2U, 3U}) landing_.shut(slot);
  landing_.expect_nothing_at(3);
  write(2, 'l');
  EXPECT_EQ(landing_.state(2), SlotState::away);
  write(3, 'a');
  EXPECT_EQ(landing_.state(3), SlotState::ahead);
  write(0, 'a');
  EXPECT_EQ(landing_.state(0), SlotState::ahead);
  landing_.lead_away(0);
  EXPECT_EQ(landing_.state(0), SlotState::away);
}

TEST_P(LandingTest, WhatIsOpenedAgainIsWhatItWas) {
  for (uint32_t slot = 0; slot < kSlots; ++slot) write(slot, static_cast<char>('a' + slot));
  landing_.shut(0);
  landing_.lead_away(1);
  landing_.shut(2);
  for (uint32_t slot = 0; slot < kSlots; ++slot) write(slot, 'x');
  landing_.shut(1);
  for (uint32_t slot = 0; slot < kSlots; ++slot) landing_.open(slot);
  EXPECT_EQ(std::string({seen(0), seen(1), seen(2), seen(3)}), "abcx");
  for (uint32_t slot = 0; slot < kSlots; ++slot) write(slot, static_cast<char>('e' + slot));
  EXPECT_EQ(std::string({seen(0), seen(1), seen(2), seen(3)}), "efgh");
}

// By the signal, or by a sanitizer's handler of it, which was there first.
bool ended_by_a_fault(int status) {
#if defined(WEFT_SANITIZER)
  return WIFEXITED(status) && WEXITSTATUS(status) != 0;
#else
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV;
#endif
}

TEST_P(LandingTest, OtherFaultsEndTheProcess) {
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
#if defined(WEFT_SANITIZER)
  const char* const told = "SEGV on unknown address";
#else
  const char* const told = "";
#endif
  EXPECT_EXIT(std::raise(SIGSEGV), ended_by_a_fault, told);
  EXPECT_EXIT(*reinterpret_cast<volatile char*>(8) = 1, ended_by_a_fault, told);
}

INSTANTIATE_TEST_SUITE_P(Slots, LandingTest, ::testing::Values(2, 64),
                         [](const auto& p) { return std::to_string(p.param) + "_pages"; });

TEST(Landing, SlotsOfAPageTableAreApart) {
  if (::getpagesize() != 4096) GTEST_SKIP() << "page tables cover more than a slot here";
  constexpr uint64_t kTable = 2 << 20;
  EXPECT_EQ(Landing::step_of(8192), 8192U);
  EXPECT_EQ(Landing::step_of(2'007'040), kTable);  // a usual block
  EXPECT_EQ(Landing::step_of(kTable), kTable);
  EXPECT_EQ(Landing::step_of(kTable + 4096), 2 * kTable);
}

}  // namespace
}  // namespace weft::stream
