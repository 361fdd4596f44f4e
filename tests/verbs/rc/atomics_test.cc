// Atomics of several queue pairs on one word at the same time. RFC 7306 section 5.3.

#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <numeric>
#include <thread>

#include "tests/verbs/endpoint.h"
#include "tests/verbs/own_process.h"

namespace weft::test {
namespace {

constexpr size_t kPairs = 2;
constexpr size_t kAtOnce = 16;

struct Word {
  Adapter adapter;
  alignas(8) uint64_t value = 0;
  MrPtr mr = adapter.reg(&value, sizeof value);
};

// One that asks for atomics on the word, and its peer; both on the same engine.
struct Pair {
  CqPtr cq;
  std::vector<uint64_t> before = std::vector<uint64_t>(kAtOnce);
  MrPtr mr;
  QpPtr served;
  QpPtr asks;

  // What was there before each of the next `count` atomics, all of them at once.
  std::vector<uint64_t> ask(const Word& word, ibv_wr_opcode opcode, uint64_t compare_add,
                            uint64_t swap, size_t count) {
    ibv_send_wr wr{};
    wr.opcode = opcode;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.atomic = {.remote_addr = reinterpret_cast<uintptr_t>(&word.value),
                    .compare_add = compare_add,
                    .swap = swap,
                    .rkey = word.mr->rkey};
    for (size_t i = 0; i < count; ++i) {
      check_errno(post_send(asks.get(), wr, {sge(&before[i], 8, mr.get())}), "post_send");
    }
    const auto done = collect(cq.get(), count);
    check(done.size() == count, "completions");
    for (const ibv_wc& wc : done) check(wc.status == IBV_WC_SUCCESS, "an atomic");
    return {before.begin(), before.begin() + static_cast<ptrdiff_t>(count)};
  }
};

// Runs `each` once for each pair, in a thread of its own; everything that they returned. An engine
// for each pair, so that two processors can be inside an atomic.
template <class Each>
std::vector<uint64_t> from_two_threads(Word& word, Each each) {
  std::vector<Pair> pairs(kPairs);
  // Queue pairs take the engines in turn.
  for (Pair& p : pairs) {
    p.cq = word.adapter.cq(64);
    p.mr = word.adapter.reg(p.before.data(), kAtOnce * 8);
    p.served = make_qp(word.adapter, p.cq.get());
  }
  for (Pair& p : pairs) p.asks = make_qp(word.adapter, p.cq.get());
  for (Pair& p : pairs) {
    connect(p.asks.get(), own_gid(word.adapter), p.served.get(), own_gid(word.adapter));
    p.ask(word, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 0, 1);  // it is up
  }
  // Each engine has a port of its own, which is in the numbers of its queue pairs.
  check(pairs[0].served->qp_num >> 8 != pairs[1].served->qp_num >> 8, "two engines");
  std::vector<std::vector<uint64_t>> found(kPairs);
  std::vector<std::string> complaints(kPairs);
  std::barrier start(kPairs);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kPairs; ++i) {
    threads.emplace_back([&, i] {
      start.arrive_and_wait();
      try {
        each(pairs[i], found[i]);
      } catch (const std::exception& e) {
        complaints[i] = e.what();
      }
    });
  }
  for (std::thread& t : threads) t.join();
  for (const std::string& c : complaints) check(c.empty(), c.c_str());
  std::vector<uint64_t> all;
  for (const auto& f : found) all.insert(all.end(), f.begin(), f.end());
  return all;
}

// Nobody saw what another one saw, and nothing is missing.
void expect_each_number_once(std::vector<uint64_t> found, const Word& word) {
  std::sort(found.begin(), found.end());
  std::vector<uint64_t> wanted(found.size());
  std::iota(wanted.begin(), wanted.end(), 0);
  check(found == wanted, "a value was found twice");
  check(word.value == found.size(), "the sum");
}

void fetch_and_add() {
  constexpr size_t kRounds = 2000;
  Word word;
  const auto found = from_two_threads(word, [&](Pair& p, std::vector<uint64_t>& all) {
    for (size_t i = 0; i < kRounds; ++i) {
      const auto some = p.ask(word, IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 0, kAtOnce);
      all.insert(all.end(), some.begin(), some.end());
    }
  });
  check(found.size() == kPairs * kRounds * kAtOnce, "their number");
  expect_each_number_once(found, word);
}

// Each counts up by one where the word is as it was seen last; the values that it replaced.
void compare_and_swap() {
  constexpr size_t kTimes = 5000;
  Word word;
  const auto found = from_two_threads(word, [&](Pair& p, std::vector<uint64_t>& all) {
    uint64_t last = 0;
    while (all.size() < kTimes) {
      const uint64_t was = p.ask(word, IBV_WR_ATOMIC_CMP_AND_SWP, last, last + 1, 1)[0];
      if (was == last) all.push_back(was);
      last = was == last ? last + 1 : was;
    }
  });
  check(found.size() == kPairs * kTimes, "their number");
  expect_each_number_once(found, word);
}

// How many engines there are is asked once.
void run_on_two_engines(void (*body)()) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(with({{"WEFT_ENGINES", "2"}}, body), ::testing::ExitedWithCode(0), "");
}

TEST(Atomics, additions_of_two_queue_pairs_are_all_counted) {
  run_on_two_engines(fetch_and_add);
}

TEST(Atomics, a_value_is_swapped_once) {
  run_on_two_engines(compare_and_swap);
}

}  // namespace
}  // namespace weft::test
