#include "sdp/sockets/recent.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <utility>

#include "sdp/sockets/epoll_set.h"
#include "sdp/sockets/look.h"

namespace weft::sdp {
namespace {

using Clock = std::chrono::steady_clock;

// How often a thread that looks asks for what else it waits for.
constexpr std::chrono::microseconds kOthers{10};
// A sleep costs a wake-up for each connection that has news next, and their peers work in batches.
// So a thread of a process with many connections looks longer, where that pays.
constexpr std::chrono::microseconds kLookForEach{20};
constexpr std::chrono::microseconds kLongestLook{400};

struct Looker {
  Completions* completions = nullptr;  // of the process; they never end
  LookTime look_time;
  uint64_t seen = 0;    // of what mirrors and epolls were told
  bool looked = false;  // before it sleeps
};

std::chrono::microseconds longest_look(const Completions& completions) {
  const auto members = static_cast<int64_t>(completions.count_members());
  return std::clamp(members * kLookForEach, LookTime::kMost, kLongestLook);
}

// The first thread that works on one notes them.
std::atomic<Completions*> g_of_process{nullptr};

Looker& mine() {
  thread_local Looker looker;
  return looker;
}

}  // namespace

void Recent::note(Completions& completions) {
  mine().completions = &completions;
  if (g_of_process.load(std::memory_order_relaxed) == nullptr) g_of_process = &completions;
}

bool Recent::any_of_process() {
  const Completions* completions = g_of_process.load();
  return completions != nullptr && completions->any_members();
}

bool Recent::any() {
  const Completions* completions = mine().completions;
  return completions != nullptr && completions->any_members();
}

void Recent::take() {
  if (any()) (void)mine().completions->take(Completions::How::if_free);
}

bool Recent::look(const std::function<bool()>& other_news) {
  Looker& looker = mine();
  Completions& completions = *looker.completions;
  const auto any_news = [&] {
    completions.take(Completions::How::if_free);
    // It may be for another thread.
    const uint64_t shown = completions.count_shown() + EpollSet::news();
    return std::exchange(looker.seen, shown) != shown && other_news();
  };
  // Once in any case: news that is there already needs no event, each of which wakes the loop.
  if (any_news()) return true;
  const auto how = looker.look_time.next();
  looker.looked = how != LookTime::How::sleep;
  if (!looker.looked) return false;
  if (other_news()) return true;
  const Completions::Looking looking{completions, nullptr};
  auto others = Clock::now() + kOthers;
  return look_for(looker.look_time, how, longest_look(completions), [&] {
    if (how == LookTime::How::yield) (void)::sched_yield();
    if (any_news()) return true;
    const auto now = Clock::now();
    if (now < others) return false;
    others = now + kOthers;
    return other_news();
  });
}

void Recent::forget_in_child() {
  mine() = {};
  g_of_process = nullptr;
}

Recent::Sleep::Sleep() : completions_(g_of_process.load()), since_(Clock::now()) {
  completions_->want(1);
  (void)completions_->rest();
}

// A sleep that was that short, with what waking up costs, says that a look would have paid. Where
// looks are in vain because all threads sleep, and wake each other, nothing else says so.
Recent::Sleep::~Sleep() {
  completions_->want(-1);
  if (mine().looked || Clock::now() - since_ >= longest_look(*completions_)) return;
  mine().look_time.result(LookTime::How::keep, true);
}

}  // namespace weft::sdp
