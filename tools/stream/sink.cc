#include "stream/sink.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <tuple>

#include "bench/failure.h"
#include "stream/block_file.h"
#include "stream/thread_sink.h"

namespace weft::stream {
namespace {

iovec piece(const void* begin, size_t size) {
  return {.iov_base = const_cast<void*>(begin), .iov_len = size};
}

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

// A file on a file system that is a page cache and nothing else: it takes O_DIRECT (since Linux
// 6.6), and copies all the same. Devices have their names on one, too.
bool in_memory(int fd) {
  struct statfs s {};
  return ::fstatfs(fd, &s) == 0 && s.f_type == TMPFS_MAGIC;
}

// Blocks as they lie in the ring, each behind its header: all of it aligned, so that it can go past
// the page cache. A disk is never without work while there are blocks. Writes that make a file
// longer wait for each other in the file system, so that it is made longer ahead of them.
class FileSink final : public ThreadSink {
 public:
  FileSink(const std::string& path, bool overwrite, Ring& ring)
      : ThreadSink(ring, kWriters), path_(path) {
    constexpr int kFlags = O_WRONLY | O_CREAT | O_CLOEXEC;
    fd_ = port::Fd{::open(path.c_str(), kFlags | O_DIRECT, 0644)};
    // Some file systems know no other way.
    direct_ = fd_.valid() || errno != EINVAL;
    if (!direct_) fd_ = port::Fd{::open(path.c_str(), kFlags, 0644)};
    if (!fd_.valid()) throw bench::system_failure(path);
    if (::flock(fd_.get(), LOCK_EX | LOCK_NB) != 0) {
      throw bench::Failure{path + " is written by another receiver"};
    }
    struct stat st {};
    if (::fstat(fd_.get(), &st) != 0) throw bench::system_failure(path);
    // What else there is, a device, stays as long as it is, and is written from its first byte on.
    regular_ = S_ISREG(st.st_mode);
    if (regular_) {
      if (in_memory(fd_.get())) direct_ = false;
      if (!overwrite) {
        begin_ = end_of_blocks(path, ring.header());
        ends_before_ = ends_of_streams(path, ring.header(), begin_);
      }
      if (::ftruncate(fd_.get(), static_cast<off_t>(begin_)) != 0) {
        throw bench::system_failure(path);
      }
    }
    reserved_ = end_ = begin_;
    reserves_ = regular_ && direct_;
    start();
  }
  ~FileSink() override {
    stop();
    (void)cut();  // as flush() did where all went well
  }
  std::optional<bool> direct() const override { return direct_; }
  std::optional<uint64_t> end_before(uint32_t stream) const override {
    const auto found = ends_before_.find(stream);
    return found == ends_before_.end() ? std::nullopt : std::optional{found->second};
  }

 private:
  static constexpr unsigned kWriters = 3;
  static constexpr uint64_t kAhead = 64 << 20;

  uint64_t size_of(const weft_stream_block& block) const override {
    return sizeof block + block.block_bytes;
  }
  void write(const Job& job) override {
    std::array<iovec, 2> pieces{header_of(job), piece(job.data, job.block->block_bytes)};
    const uint64_t end = place_of(job) + size_of(*job.block);
    reserve(end);
    try {
      put(pieces, static_cast<int64_t>(place_of(job)));
    } catch (const bench::Failure&) {
      take_back(job);
      throw;
    }
    const std::lock_guard lock{reserving_};
    end_ = std::max(end_, end);
  }
  // What was said while the block was on its way, its header has to have, too. For most it is
  // there.
  void settle(const Job& job) override {
    if (__atomic_load_n(&job.block->damaged, __ATOMIC_ACQUIRE) == 0) return;
    std::array<iovec, 1> again{header_of(job)};
    write_all(fd_.get(), again, static_cast<int64_t>(place_of(job)));
  }
  void flush() override {
    if (!cut()) throw bench::system_failure(path_);
    if (::fdatasync(fd_.get()) != 0 && errno != EINVAL) throw bench::system_failure(path_);
  }
  // A header says that its data is there. Past the page cache a write goes on when the process is
  // killed; a copy into the cache ends where it is, and so the header has to come behind the data.
  void put(std::array<iovec, 2> pieces, int64_t place) {
    if (direct_) return write_all(fd_.get(), pieces, place);
    const auto header_bytes = static_cast<int64_t>(pieces[0].iov_len);
    write_all(fd_.get(), std::span{pieces}.subspan(1), place + header_bytes);
    write_all(fd_.get(), std::span{pieces}.first(1), place);
  }
  uint64_t place_of(const Job& job) const { return begin_ + job.position; }
  static iovec header_of(const Job& job) { return piece(job.block, sizeof *job.block); }

  // A block will end there. Where nothing can be had in advance, a device or a disk that is nearly
  // full, the writes themselves have to do.
  void reserve(uint64_t end) {
    const std::lock_guard lock{reserving_};
    while (reserves_ && reserved_ < end) {
      if (::fallocate(fd_.get(), 0, static_cast<off_t>(reserved_), kAhead) == 0) {
        reserved_ += kAhead;
      } else if (errno != EINTR) {
        reserves_ = false;
      }
    }
  }
  // A block that got no further than its begin would look whole when others follow it, and a header
  // of zeroes is one that was not written. The disk may have no room for that either: then nothing
  // of the block is there.
  void take_back(const Job& job) {
    alignas(4096) static constexpr std::array<std::byte, sizeof(weft_stream_block)> kNone{};
    std::ignore =
        ::pwrite(fd_.get(), kNone.data(), kNone.size(), static_cast<off_t>(place_of(job)));
  }
  // What was reserved and not used goes, also what an attempt that failed has left, and what became
  // of a block that could not be written.
  bool cut() {
    const std::lock_guard lock{reserving_};
    reserves_ = false;
    return !regular_ || ::ftruncate(fd_.get(), static_cast<off_t>(end_)) == 0;
  }

  const std::string path_;
  port::Fd fd_;
  bool direct_ = true;
  bool regular_ = false;
  uint64_t begin_ = 0;  // the file has blocks of other receivers before it
  std::map<uint32_t, uint64_t> ends_before_;

  std::mutex reserving_;  // of what follows
  bool reserves_ = false;
  uint64_t reserved_ = 0;
  uint64_t end_ = 0;  // of the last block that was written
};

// Packets in their order, in one thread: there is one place where they go.
class StdoutSink final : public ThreadSink {
 public:
  explicit StdoutSink(Ring& ring) : ThreadSink(ring, 1), zeroes_(ring.header().packet_bytes) {
    start();
  }
  ~StdoutSink() override { stop(); }

 private:
  uint64_t size_of(const weft_stream_block& block) const override {
    return uint64_t{block.packets} * block.packet_bytes;
  }
  void write(const Job& job) override {
    const weft_stream_block& block = *job.block;
    pieces_.clear();
    for (uint32_t i = 0; i < block.packets; ++i) {
      const bool here = (block.valid[i / 8] >> (i % 8) & 1) != 0;
      const std::byte* packet = here ? job.data + uint64_t{i} * block.slot_bytes : zeroes_.data();
      pieces_.push_back(piece(packet, block.packet_bytes));
    }
    write_all(STDOUT_FILENO, pieces_, -1);
  }

  const std::vector<std::byte> zeroes_;
  std::vector<iovec> pieces_;
};

}  // namespace

std::unique_ptr<Sink> make_sink(const SinkOptions& options, Ring& ring) {
  if (!options.file.empty()) {
    return std::make_unique<FileSink>(options.file, options.overwrite, ring);
  }
  if (options.to_stdout) return std::make_unique<StdoutSink>(ring);
  return nullptr;
}

}  // namespace weft::stream
