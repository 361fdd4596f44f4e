#include "sdp/sockets/epoll_set.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <mutex>
#include <new>
#include <utility>

#include "base/guarded.h"
#include "sdp/sockets/stream.h"
#include "sdp/sockets/table.h"

namespace weft::sdp {
namespace {

constexpr unsigned kMostEpolls = 1 << 16;
// What is not a connection waits so long while connections have news.
constexpr std::chrono::microseconds kKernelWaits{50};

std::array<std::atomic<EpollSet*>, kMostEpolls> g_sets{};
std::atomic<int> g_highest{-1};  // of those that there are

}  // namespace

EpollSet* EpollSet::find(int epoll) {
  const auto number = static_cast<unsigned>(epoll);
  return number < kMostEpolls ? g_sets[number].load(std::memory_order_acquire) : nullptr;
}

EpollSet* EpollSet::make(int epoll) {
  if (EpollSet* const there = find(epoll)) return there;
  if (static_cast<unsigned>(epoll) >= kMostEpolls) return nullptr;
  auto* const made = new (std::nothrow) EpollSet(epoll);
  if (made == nullptr) return nullptr;
  for (int highest = g_highest; highest < epoll;) {
    if (g_highest.compare_exchange_weak(highest, epoll)) break;
  }
  EpollSet* none = nullptr;
  if (g_sets[static_cast<unsigned>(epoll)].compare_exchange_strong(none, made)) return made;
  delete made;
  return none;
}

// What was put off for the epoll that was is nobody's any more.
void EpollSet::end(int epoll) {
  EpollSet* const set = find(epoll);
  if (set == nullptr || Table::in_borrowed_memory()) return;
  const std::lock_guard lock{set->lock_};
  set->age_.fetch_add(1);
  set->asked_ = false;
  set->plain_ = false;
  set->has_news_ = false;
  set->listed_.clear();
  set->taken_ = 0;
  set->put_off_.clear();
}

void EpollSet::end_range(unsigned first, unsigned last) {
  for (unsigned n = first; n <= last && n < kMostEpolls; ++n) end(static_cast<int>(n));
}

// Their locks may be held by threads that the child does not have.
void EpollSet::forget_in_child() {
  if (g_highest < 0) return;
  for (int n = 0; n <= g_highest; ++n) g_sets[static_cast<unsigned>(n)] = nullptr;
  g_highest = -1;
}

void EpollSet::make_plain(int epoll) {
  if (EpollSet* const set = find(epoll)) set->tell_kernel(true);
}

// With the lock. Who goes to sleep is counted before he takes what was put off.
bool EpollSet::may_put_off(uint64_t age) const {
  return age == this->age() && !plain_ && asked_.load() && asleep_.load() == 0;
}

bool EpollSet::put(uint64_t age, int fd) {
  const std::lock_guard lock{lock_};
  if (!may_put_off(age)) return false;
  if (taken_ > 0 && listed_.size() == listed_.capacity()) {
    listed_.erase(listed_.begin(), listed_.begin() + static_cast<ptrdiff_t>(taken_));
    taken_ = 0;
  }
  try {
    listed_.push_back(fd);
  } catch (const std::bad_alloc&) {
    return false;
  }
  has_news_ = true;
  g_news.fetch_add(1, std::memory_order_relaxed);
  return true;
}

bool EpollSet::put_off(uint64_t age, int fd, uint64_t data) {
  const std::lock_guard lock{lock_};
  if (!may_put_off(age)) return false;
  try {
    put_off_.push_back({fd, data});
  } catch (const std::bad_alloc&) {
    return false;
  }
  return true;
}

void EpollSet::told(int fd) {
  const std::lock_guard lock{lock_};
  std::erase_if(put_off_, [fd](const PutOff& p) { return p.fd == fd; });
}

// -1: no more of those that were there.
int EpollSet::take_next(size_t& left) {
  const std::lock_guard lock{lock_};
  const size_t there = listed_.size() - taken_;
  left = std::min(left, there);
  if (left == 0) return -1;
  --left;
  const int fd = listed_[taken_++];
  if (taken_ == listed_.size()) {
    listed_.clear();
    taken_ = 0;
    has_news_ = false;
  }
  return fd;
}

// Handlers wait: one that jumped out would leave a connection that is listed and in no list.
int EpollSet::collect(epoll_event* events, int most, int told) {
  const HoldHandlers hold;
  int n = told;
  const uint64_t at = age();
  size_t left = SIZE_MAX;
  for (int fd = 0; n < most && (fd = take_next(left)) >= 0;) {
    const auto stream = Table::find(fd);
    epoll_event event{};
    if (!stream || !stream->waiting().collect(at, *this, event)) continue;
    // The kernel may have told of the same connection.
    epoll_event* const end = events + told;
    epoll_event* const same = std::find_if(
        events, end, [&](const epoll_event& e) { return e.data.u64 == event.data.u64; });
    if (same != end) {
      same->events |= event.events;
      continue;
    }
    if (!copy_guarded(&events[n], &event, sizeof event)) {
      errno = EFAULT;
      return n > 0 ? n : -1;
    }
    ++n;
  }
  return n;
}

int EpollSet::from_kernel(epoll_event* events, int n) {
  kernel_due_ = Clock::now() + kKernelWaits;
  if (n <= 0) return n;
  const HoldHandlers hold;
  int kept = 0;
  for (int i = 0; i < n; ++i) {
    int fd = -1;
    {
      const std::lock_guard lock{lock_};
      const auto found = std::ranges::find(put_off_, events[i].data.u64, &PutOff::data);
      if (found != put_off_.end()) fd = found->fd;
    }
    const auto stream = fd >= 0 ? Table::find(fd) : nullptr;
    if (stream && !stream->waiting().set_right(*this, events[i])) continue;
    events[kept++] = events[i];
  }
  return kept;
}

void EpollSet::tell_kernel(bool becomes_plain) {
  const HoldHandlers hold;
  std::vector<int> listed;
  std::vector<PutOff> put_off;
  {
    const std::lock_guard lock{lock_};
    if (becomes_plain) plain_ = true;
    listed.swap(listed_);
    listed.erase(listed.begin(), listed.begin() + static_cast<ptrdiff_t>(std::exchange(taken_, 0)));
    has_news_ = false;
    put_off.swap(put_off_);
  }
  for (const PutOff& one : put_off) {
    if (const auto stream = Table::find(one.fd)) stream->waiting().tell_kernel(*this);
  }
  for (const int fd : listed) {
    if (const auto stream = Table::find(fd)) stream->waiting().tell_kernel(*this);
  }
}

EpollSet::Asleep::Asleep(EpollSet& set) : set_(set) {
  ++set_.asleep_;
  set_.tell_kernel(false);
}

}  // namespace weft::sdp
