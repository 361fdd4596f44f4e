#include "stream/sink.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <thread>

#include "bench/failure.h"

namespace weft::stream {
namespace {

// Writes all of it, from `offset` on; negative: where the descriptor stands.
void write_all(int fd, std::span<iovec> pieces, int64_t offset) {
  while (!pieces.empty()) {
    const auto count = static_cast<int>(std::min<size_t>(pieces.size(), IOV_MAX));
    const ssize_t n = offset < 0 ? ::writev(fd, pieces.data(), count)
                                 : ::pwritev(fd, pieces.data(), count, offset);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw bench::system_failure("writing what was received");
    if (offset >= 0) offset += n;
    auto left = static_cast<size_t>(n);
    while (!pieces.empty() && left >= pieces.front().iov_len) {
      left -= pieces.front().iov_len;
      pieces = pieces.subspan(1);
    }
    if (pieces.empty()) return;
    pieces.front().iov_base = static_cast<std::byte*>(pieces.front().iov_base) + left;
    pieces.front().iov_len -= left;
  }
}

// The blocks of all streams, in one thread.
class ThreadSink : public Sink {
 public:
  explicit ThreadSink(Ring& ring) : ring_(ring) {
    for (uint32_t i = 0; i < ring.spec().streams; ++i) ring.stream(i).attach();
  }
  // Their own destructors call stop(): the thread uses what they have.
  ~ThreadSink() override = default;
  void finish() override {
    stop();
    if (failed()) throw bench::Failure{error_};
    flush();
  }
  bool failed() const override { return failed_; }
  uint64_t bytes() const override { return bytes_; }

 protected:
  void start() {
    thread_ = std::thread{[this] { work(); }};
  }
  virtual void write(BlockStore& store, const weft_stream_block& block) = 0;
  virtual void flush() {}
  std::atomic<uint64_t> bytes_{0};
  void stop() {
    if (!thread_.joinable()) return;
    stopping_ = true;
    uint32_t& signal = ring_.header().signal;
    __atomic_add_fetch(&signal, 1, __ATOMIC_SEQ_CST);
    ::syscall(SYS_futex, &signal, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
    thread_.join();
  }

 private:
  bool write_some() {
    bool any = false;
    for (uint32_t i = 0; i < ring_.spec().streams; ++i) {
      BlockStore& store = ring_.stream(i);
      const weft_stream_block* block = store.front();
      if (block == nullptr) continue;
      write(store, *block);
      store.release();
      any = true;
    }
    return any;
  }
  void work() {
    try {
      for (;;) {
        const bool last = stopping_;
        const uint32_t seen = __atomic_load_n(&ring_.header().signal, __ATOMIC_ACQUIRE);
        if (write_some()) continue;
        if (last) return;
        const timespec t{.tv_sec = 0, .tv_nsec = 100'000'000};
        ::syscall(SYS_futex, &ring_.header().signal, FUTEX_WAIT, seen, &t, nullptr, 0);
      }
    } catch (const bench::Failure& failure) {
      error_ = failure.what();
      failed_ = true;
    }
  }

  Ring& ring_;
  std::thread thread_;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> failed_{false};
  std::string error_;
};

// Blocks as they lie in the ring, each behind its header: all of it aligned, so that it can go past
// the page cache.
class FileSink final : public ThreadSink {
 public:
  FileSink(const std::string& path, Ring& ring) : ThreadSink(ring), path_(path) {
    constexpr int kFlags = O_WRONLY | O_CREAT | O_CLOEXEC;
    fd_ = port::Fd{::open(path.c_str(), kFlags | O_DIRECT, 0644)};
    // Some file systems, such as those in memory, know no other way.
    if (!fd_.valid() && errno == EINVAL) fd_ = port::Fd{::open(path.c_str(), kFlags, 0644)};
    if (!fd_.valid()) throw bench::system_failure(path);
    if (::flock(fd_.get(), LOCK_EX | LOCK_NB) != 0) {
      throw bench::Failure{path + " is written by another receiver"};
    }
    // A device stays as long as it is.
    if (::ftruncate(fd_.get(), 0) != 0 && errno != EINVAL) throw bench::system_failure(path);
    start();
  }
  ~FileSink() override { stop(); }

 private:
  void write(BlockStore& store, const weft_stream_block& block) override {
    const iovec header{.iov_base = const_cast<weft_stream_block*>(&block), .iov_len = sizeof block};
    const iovec data{.iov_base = const_cast<std::byte*>(store.data_of(&block)),
                     .iov_len = block.block_bytes};
    std::array<iovec, 2> pieces{header, data};
    write_all(fd_.get(), pieces, static_cast<int64_t>(bytes_.load()));
    // Said while the block was on its way: its header has to have it.
    if (__atomic_load_n(&block.damaged, __ATOMIC_ACQUIRE) != 0) {
      std::array<iovec, 1> again{header};
      write_all(fd_.get(), again, static_cast<int64_t>(bytes_.load()));
    }
    bytes_ += sizeof block + block.block_bytes;
  }
  void flush() override {
    if (::fdatasync(fd_.get()) != 0 && errno != EINVAL) throw bench::system_failure(path_);
  }

  const std::string path_;
  port::Fd fd_;
};

class StdoutSink final : public ThreadSink {
 public:
  explicit StdoutSink(Ring& ring) : ThreadSink(ring), zeroes_(ring.header().packet_bytes) {
    start();
  }
  ~StdoutSink() override { stop(); }

 private:
  void write(BlockStore& store, const weft_stream_block& block) override {
    const std::byte* data = store.data_of(&block);
    pieces_.clear();
    for (uint32_t i = 0; i < block.packets; ++i) {
      const bool here = (block.valid[i / 8] >> (i % 8) & 1) != 0;
      const std::byte* packet = here ? data + uint64_t{i} * block.slot_bytes : zeroes_.data();
      pieces_.push_back(
          {.iov_base = const_cast<std::byte*>(packet), .iov_len = block.packet_bytes});
    }
    write_all(STDOUT_FILENO, pieces_, -1);
    bytes_ += uint64_t{block.packets} * block.packet_bytes;
  }

  const std::vector<std::byte> zeroes_;
  std::vector<iovec> pieces_;
};

}  // namespace

std::unique_ptr<Sink> make_sink(const SinkOptions& options, Ring& ring) {
  if (!options.file.empty()) return std::make_unique<FileSink>(options.file, ring);
  if (options.to_stdout) return std::make_unique<StdoutSink>(ring);
  return nullptr;
}

}  // namespace weft::stream
