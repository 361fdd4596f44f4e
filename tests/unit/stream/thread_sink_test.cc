#include "stream/thread_sink.h"

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <new>
#include <set>

#include "kit/failure.h"
#include "ring_under_test.h"

namespace weft::stream {
namespace {

// Blocks wait in write() until the test lets them through.
class GatedSink final : public ThreadSink {
 public:
  GatedSink(Ring& ring, unsigned threads) : ThreadSink(ring, threads) { start(); }
  ~GatedSink() override {
    open_all();
    stop();
  }
  // Returns when so many blocks wait in write(); their places.
  std::map<uint64_t, uint64_t> waiting(size_t count) {
    std::unique_lock lock{mutex_};
    changed_.wait(lock, [&] { return inside_.size() >= count; });
    return inside_;
  }
  void let(uint64_t block, bool works = true) {
    const std::lock_guard lock{mutex_};
    (works ? open_ : broken_).insert(block);
    changed_.notify_all();
  }
  void let_without_memory(uint64_t block) {
    memory_is_out_ = true;
    let(block);
  }
  void open_all() {
    const std::lock_guard lock{mutex_};
    all_ = true;
    changed_.notify_all();
  }
  // As many blocks as were settled each time that a sender was over.
  std::vector<size_t> overs() {
    const std::lock_guard lock{mutex_};
    return overs_;
  }
  std::vector<uint64_t> settled() {
    const std::lock_guard lock{mutex_};
    return settled_;
  }

 private:
  uint64_t size_of(const Job& job) override { return 100 + job.block->number; }
  void write(Job& job) override {
    const uint64_t number = job.block->number;
    std::unique_lock lock{mutex_};
    inside_[number] = job.position;
    changed_.notify_all();
    changed_.wait(lock, [&] { return all_ || open_.contains(number) || broken_.contains(number); });
    inside_.erase(number);
    if (memory_is_out_) throw std::bad_alloc{};
    if (broken_.contains(number)) throw kit::Failure{"block " + std::to_string(number)};
  }
  void settle(const Job& job) override {
    const std::lock_guard lock{mutex_};
    settled_.push_back(job.block->number);
  }

  void over(uint32_t) override {
    const std::lock_guard lock{mutex_};
    overs_.push_back(settled_.size());
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<uint64_t, uint64_t> inside_;
  std::set<uint64_t> open_;
  std::set<uint64_t> broken_;
  std::vector<uint64_t> settled_;
  std::vector<size_t> overs_;
  bool all_ = false;
  std::atomic<bool> memory_is_out_{false};
};

void until(const std::function<bool()>& holds) {
  while (!holds()) std::this_thread::yield();
}

TEST(ThreadSink, KnowsWhenTheLastBlockOfASenderIsWritten) {
  Ring ring{spec_of("", false)};
  GatedSink sink{ring, 1};
  BlockStore& store = ring.stream(0);
  for (uint64_t block = 0; block < 3; ++block) store.publish(block, {0xff}, 8);
  sink.waiting(1);
  sink.end_stream(0);
  sink.let(0);
  sink.let(1);
  until([&] { return sink.settled().size() == 2; });
  EXPECT_TRUE(sink.overs().empty());
  store.publish(3, {0xff}, 8);  // of the next sender
  sink.let(2);
  until([&] { return !sink.overs().empty(); });
  EXPECT_EQ(sink.overs(), (std::vector<size_t>{3}));
  sink.open_all();
  until([&] { return sink.settled().size() == 4; });
  sink.end_stream(0);  // all of it is written already
  until([&] { return sink.overs().size() == 2; });
  EXPECT_EQ(sink.overs(), (std::vector<size_t>{3, 4}));
}

TEST(ThreadSink, KnowsTheEndsOfSendersThatItIsBehind) {
  for (const unsigned threads : {1U, 3U}) {
    Ring ring{spec_of("", false)};
    GatedSink sink{ring, threads};
    BlockStore& store = ring.stream(0);
    store.publish(0, {0xff}, 8);
    sink.waiting(1);
    store.publish(1, {0xff}, 8);
    sink.end_stream(0);
    store.publish(2, {0xff}, 8);
    sink.end_stream(0);
    sink.end_stream(0);  // one that sent nothing
    store.publish(3, {0xff}, 8);
    sink.open_all();
    until([&] { return sink.settled().size() == 4; });
    EXPECT_EQ(sink.overs(), (std::vector<size_t>{2, 3, 3}));
  }
}

TEST(ThreadSink, WritesSeveralBlocksAtATimeAndReleasesThemInOrder) {
  Ring ring{spec_of("", false)};
  GatedSink sink{ring, 3};
  BlockStore& store = ring.stream(0);
  for (uint64_t block = 0; block < 3; ++block) store.publish(block, {0xff}, 8);
  const std::map<uint64_t, uint64_t> places = sink.waiting(3);
  EXPECT_EQ(places, (std::map<uint64_t, uint64_t>{{0, 0}, {1, 100}, {2, 201}}));

  sink.let(2);
  sink.let(1);
  until([&] { return sink.waiting(1).size() == 1; });
  EXPECT_EQ(store.filled(), 3U) << "the oldest one is still being written";
  EXPECT_EQ(sink.bytes(), 0U);
  EXPECT_TRUE(sink.settled().empty());

  sink.let(0);
  until([&] { return store.filled() == 0; });
  EXPECT_EQ(sink.settled(), (std::vector<uint64_t>{0, 1, 2}));
  sink.finish();
  EXPECT_EQ(sink.bytes(), 303U);
}

TEST(ThreadSink, TakesStreamsByTurns) {
  Ring ring{spec_of("", false)};
  ASSERT_EQ(ring.spec().streams, 2U);
  ring.stream(0).attach();  // so that nothing is released before the sink is there
  ring.stream(1).attach();
  for (uint64_t block = 0; block < 2; ++block) {
    ring.stream(0).publish(block, {0xff}, 8);
    ring.stream(1).publish(block + 10, {0xff}, 8);
  }
  GatedSink sink{ring, 2};
  const std::map<uint64_t, uint64_t> places = sink.waiting(2);
  EXPECT_TRUE(places.contains(0)) << "the oldest of the first stream";
  EXPECT_TRUE(places.contains(10)) << "and of the second";
  sink.open_all();
  sink.finish();
  EXPECT_EQ(sink.bytes(), 100U + 101 + 110 + 111);
}

TEST(ThreadSink, WritesWhatIsThereBeforeItEnds) {
  Ring ring{spec_of("", false)};
  GatedSink sink{ring, 1};
  for (uint64_t block = 0; block < 3; ++block) ring.stream(1).publish(block, {0xff}, 8);
  sink.waiting(1);
  sink.open_all();
  sink.finish();
  EXPECT_EQ(sink.settled(), (std::vector<uint64_t>{0, 1, 2}));
  EXPECT_EQ(ring.stream(1).filled(), 0U);
}

TEST(ThreadSink, AFailureEndsItAndIsTold) {
  Ring ring{spec_of("", false)};
  GatedSink sink{ring, 2};
  ring.stream(0).publish(0, {0xff}, 8);
  ring.stream(0).publish(1, {0xff}, 8);
  sink.waiting(2);
  sink.let(0, false);
  until([&] { return sink.failed(); });
  sink.let(1);
  try {
    sink.finish();
    FAIL() << "nobody was told";
  } catch (const kit::Failure& failure) {
    EXPECT_STREQ(failure.what(), "block 0");
  }
  EXPECT_EQ(ring.stream(0).filled(), 2U) << "what was not written stays";
  EXPECT_EQ(sink.bytes(), 0U);
}

TEST(ThreadSink, WithoutMemoryItEndsAndSaysSo) {
  Ring ring{spec_of("", false)};
  GatedSink sink{ring, 1};
  ring.stream(0).publish(0, {0xff}, 8);
  sink.waiting(1);
  sink.let_without_memory(0);
  until([&] { return sink.failed(); });
  EXPECT_THROW(sink.finish(), kit::Failure);
  EXPECT_EQ(ring.stream(0).filled(), 1U);
}

}  // namespace
}  // namespace weft::stream
