// A sink whose threads take blocks out of the ring.
#pragma once

#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "stream/sink.h"

namespace weft::stream {

// Each thread takes one block after the other, of all streams by turns. Blocks are released in the
// order in which they were published, whichever is written first.
class ThreadSink : public Sink {
 public:
  // Has the ring's streams from now on.
  ThreadSink(Ring& ring, unsigned threads);
  // Destructors of derived classes call stop(): the threads use what they have.
  ~ThreadSink() override = default;
  void end_stream(uint32_t stream) override;
  void finish() override;
  bool failed() const override { return failed_; }
  uint64_t bytes() const override { return bytes_; }

 protected:
  struct Job {
    uint32_t stream;
    const weft_stream_block* block;
    const std::byte* data;
    uint64_t position;  // where its bytes begin among those of all blocks
    uint64_t bytes = 0;
    bool done = false;
  };

  // To be called when the derived class is whole.
  void start();
  void stop();
  // How many bytes become of a block: once for each, in the order of their positions. One thread
  // at a time.
  virtual uint64_t size_of(const Job& job) = 0;
  // Several threads at a time; throws kit::Failure. May say that it were other bytes.
  virtual void write(Job& job) = 0;
  // Right before the block is released. One thread at a time.
  virtual void settle(const Job& /*job*/) {}
  // The last block of a sender that has ended is released, and no later one is taken before this
  // returns. Throws kit::Failure. One thread at a time.
  virtual void over(uint32_t /*stream*/) {}
  // After the last block.
  virtual void flush() {}

 private:
  void ask_to_stop();
  void wait_for_threads();
  void wake();
  bool is_over(uint32_t stream);
  void end_what_is_over();
  Job* take();
  Job* next();
  void done(Job& job);
  void work();

  Ring& ring_;
  const unsigned count_;
  std::vector<std::thread> threads_;
  std::atomic<bool> stopping_{false};
  std::atomic<unsigned> ended_{0};  // threads
  std::atomic<bool> failed_{false};
  std::atomic<uint64_t> bytes_{0};

  std::mutex taking_;  // who has it waits for a block; the others wait for it

  std::mutex mutex_;                         // of what follows
  std::vector<std::deque<Job>> unreleased_;  // of each stream, in its order
  std::vector<uint64_t> taken_;              // blocks of each stream
  std::vector<std::deque<uint64_t>> ends_;   // as many of them were published when a sender ended
  uint32_t turn_ = 0;
  uint64_t position_ = 0;
  std::string error_;
};

}  // namespace weft::stream
