#include "sdp/rdma/news_waiters.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>
#include <utility>

namespace weft::sdp {
namespace {

// Not a condition variable, whose lock a handler of a signal might find taken.
long futex(const std::atomic<uint32_t>& word, int operation, uint32_t value,
           const timespec* limit) {
  return ::syscall(SYS_futex, &word, operation, value, limit, nullptr, 0);
}

}  // namespace

void NewsWaiters::update() {
  const bool counts = !ended_ && (wanted_ || sleepers_ > 0);
  if (counts != std::exchange(counted_, counts)) completions_.want(counts ? 1 : -1);
}

void NewsWaiters::wake() {
  if (sleepers_ == 0) return;
  ++news_;
  (void)futex(news_, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr);
}

NewsWaiters::Sleeper::Sleeper(NewsWaiters& waiters) : waiters_(waiters), seen_(waiters.news_) {
  ++waiters_.sleepers_;
  waiters_.update();
}

NewsWaiters::Sleeper::~Sleeper() {
  --waiters_.sleepers_;
  waiters_.update();
}

void NewsWaiters::Sleeper::sleep(std::chrono::microseconds most) const {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(most);
  const timespec limit{seconds.count(), std::chrono::nanoseconds{most - seconds}.count()};
  (void)futex(waiters_.news_, FUTEX_WAIT_PRIVATE, seen_, &limit);
}

}  // namespace weft::sdp
