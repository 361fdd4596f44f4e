#include "stream/thread_sink.h"

#include <fmt/format.h>

#include <climits>

#include "cli/stop.h"
#include "kit/clock.h"
#include "kit/failure.h"
#include "stream/pace.h"

namespace weft::stream {

ThreadSink::ThreadSink(Ring& ring, unsigned threads)
    : ring_(ring),
      count_(threads),
      unreleased_(ring.spec().streams),
      taken_(ring.spec().streams),
      ends_(ring.spec().streams) {
  for (uint32_t i = 0; i < ring.spec().streams; ++i) ring.stream(i).attach();
}

void ThreadSink::start() {
  for (unsigned i = 0; i < count_; ++i) threads_.emplace_back([this] { work(); });
}

void ThreadSink::wake() {
  uint32_t& signal = ring_.header().signal;
  __atomic_add_fetch(&signal, 1, __ATOMIC_SEQ_CST);
  ::syscall(SYS_futex, &signal, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void ThreadSink::ask_to_stop() {
  stopping_ = true;
  wake();
}

void ThreadSink::stop() {
  ask_to_stop();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

// A slow disk, or a pipe that nobody reads, may take for ever what it has. A signal that ends the
// receiver does not wait for it.
void ThreadSink::wait_for_threads() {
  constexpr int64_t kLookNs = 2'000'000;
  while (ended_ < threads_.size()) {
    const int64_t now = kit::now_ns();
    if (now >= cli::wait_until(INT64_MAX)) {
      uint64_t left = 0;
      for (uint32_t i = 0; i < ring_.spec().streams; ++i) left += ring_.stream(i).filled();
      throw kit::Failure{fmt::format(
          "{} blocks were received and not written: what they are written to takes too long",
          left)};
    }
    sleep_until(now + kLookNs);
  }
}

void ThreadSink::finish() {
  ask_to_stop();
  wait_for_threads();
  stop();
  if (failed()) throw kit::Failure{error_};
  flush();
}

void ThreadSink::end_stream(uint32_t stream) {
  {
    const std::lock_guard lock{mutex_};
    const uint64_t published =
        taken_[stream] + ring_.stream(stream).filled() - unreleased_[stream].size();
    ends_[stream].push_back(published);
  }
  wake();
}

// Takes note of it.
bool ThreadSink::is_over(uint32_t stream) {
  const std::lock_guard lock{mutex_};
  auto& ends = ends_[stream];
  if (ends.empty() || taken_[stream] < ends.front() || !unreleased_[stream].empty()) return false;
  ends.pop_front();
  return true;
}

// Without the lock: who publishes does not wait for a disk. Nobody takes a block meanwhile.
void ThreadSink::end_what_is_over() {
  for (uint32_t stream = 0; stream < ring_.spec().streams; ++stream) {
    while (is_over(stream)) over(stream);
  }
}

// The next block that nobody has; nothing when there is none at this moment.
ThreadSink::Job* ThreadSink::take() {
  const std::lock_guard lock{mutex_};
  const uint32_t streams = ring_.spec().streams;
  for (uint32_t i = 0; i < streams; ++i) {
    const uint32_t stream = (turn_ + i) % streams;
    // Behind that end comes another sender's.
    if (!ends_[stream].empty() && ends_[stream].front() == taken_[stream]) continue;
    BlockStore& store = ring_.stream(stream);
    auto& jobs = unreleased_[stream];
    const weft_stream_block* block = store.unreleased(jobs.size());
    if (block == nullptr) continue;
    turn_ = stream + 1;
    ++taken_[stream];
    jobs.push_back(
        {.stream = stream, .block = block, .data = store.data_of(block), .position = position_});
    jobs.back().bytes = size_of(jobs.back());
    position_ += jobs.back().bytes;
    return &jobs.back();
  }
  return nullptr;
}

// Waits for it; nothing when no more will come.
ThreadSink::Job* ThreadSink::next() {
  const std::lock_guard lock{taking_};
  while (!failed_) {
    const bool last = stopping_;
    const uint32_t seen = __atomic_load_n(&ring_.header().signal, __ATOMIC_ACQUIRE);
    end_what_is_over();
    if (Job* job = take(); job != nullptr) return job;
    if (last) break;
    const timespec t{.tv_sec = 0, .tv_nsec = 100'000'000};
    ::syscall(SYS_futex, &ring_.header().signal, FUTEX_WAIT, seen, &t, nullptr, 0);
  }
  return nullptr;
}

void ThreadSink::done(Job& job) {
  const std::lock_guard lock{mutex_};
  job.done = true;
  const uint32_t stream = job.stream;
  auto& jobs = unreleased_[stream];
  while (!jobs.empty() && jobs.front().done) {
    settle(jobs.front());
    bytes_ += jobs.front().bytes;
    ring_.stream(stream).release();
    jobs.pop_front();
  }
  // Another thread may wait for this.
  if (jobs.empty() && !ends_[stream].empty()) wake();
}

void ThreadSink::work() {
  try {
    while (Job* job = next()) {
      write(*job);
      done(*job);
    }
  } catch (const std::exception& failure) {
    const std::lock_guard lock{mutex_};
    if (!failed_) error_ = failure.what();
    failed_ = true;
  }
  ++ended_;
}

}  // namespace weft::stream
