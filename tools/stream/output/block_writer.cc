#include "stream/output/block_writer.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <tuple>

#include "kit/failure.h"

namespace weft::stream {
namespace {

// A file on a file system that is a page cache and nothing else: it takes O_DIRECT (since Linux
// 6.6), and copies all the same. Devices have their names on one, too.
bool in_memory(int fd) {
  struct statfs s {};
  return ::fstatfs(fd, &s) == 0 && s.f_type == TMPFS_MAGIC;
}

// Some file systems do not.
bool goes_direct(int fd) {
  const int flags = ::fcntl(fd, F_GETFL);
  return flags >= 0 && ::fcntl(fd, F_SETFL, flags | O_DIRECT) == 0;
}

iovec header_of(const weft_stream_block& block) {
  return piece(&block, sizeof block);
}

}  // namespace

iovec piece(const void* begin, size_t size) {
  return {.iov_base = const_cast<void*>(begin), .iov_len = size};
}

void write_all(int fd, std::span<iovec> pieces, int64_t offset) {
  while (!pieces.empty()) {
    const auto count = static_cast<int>(std::min<size_t>(pieces.size(), IOV_MAX));
    const ssize_t n = offset < 0 ? ::writev(fd, pieces.data(), count)
                                 : ::pwritev(fd, pieces.data(), count, offset);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) {
      // A pipe that was given, and that its other users do not want to wait for.
      pollfd room{.fd = fd, .events = POLLOUT, .revents = 0};
      (void)::poll(&room, 1, -1);
      continue;
    }
    if (n < 0) throw kit::system_failure("writing what was received");
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

BlockWriter::BlockWriter(const port::Fd& fd, std::string path, uint64_t begin)
    : fd_(fd), path_(std::move(path)), begin_(begin), reserved_(begin), end_(begin) {
  struct stat st {};
  if (::fstat(fd_.get(), &st) != 0) throw kit::system_failure(path_);
  // What else there is, a device, stays as long as it is.
  regular_ = S_ISREG(st.st_mode);
  if (regular_ && ::ftruncate(fd_.get(), static_cast<off_t>(begin_)) != 0) {
    throw kit::system_failure(path_);
  }
  direct_ = !(regular_ && in_memory(fd_.get())) && goes_direct(fd_.get());
  reserves_ = regular_ && direct_;
}

BlockWriter::~BlockWriter() {
  (void)cut();
}

void BlockWriter::write(const weft_stream_block& block, const std::byte* data, uint64_t place) {
  place += begin_;
  const uint64_t end = place + sizeof block + block.block_bytes;
  reserve(end);
  try {
    put({header_of(block), piece(data, block.block_bytes)}, static_cast<int64_t>(place));
  } catch (const kit::Failure&) {
    take_back(place);
    throw;
  }
  const std::lock_guard lock{reserving_};
  end_ = std::max(end_, end);
}

// A header says that its data is there. Past the page cache a write goes on when the process is
// killed; a copy into the cache ends where it is, and so the header has to come behind the data.
void BlockWriter::put(std::array<iovec, 2> pieces, int64_t place) {
  if (direct_) return write_all(fd_.get(), pieces, place);
  const auto header_bytes = static_cast<int64_t>(pieces[0].iov_len);
  write_all(fd_.get(), std::span{pieces}.subspan(1), place + header_bytes);
  write_all(fd_.get(), std::span{pieces}.first(1), place);
}

// A block will end there. Where nothing can be had in advance, a device or a disk that is nearly
// full, the writes themselves have to do.
void BlockWriter::reserve(uint64_t end) {
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
// of zeroes is one that was not written. The disk may have no room for that either: then nothing of
// the block is there.
void BlockWriter::take_back(uint64_t place) {
  alignas(4096) static constexpr std::array<std::byte, sizeof(weft_stream_block)> kNone{};
  std::ignore = ::pwrite(fd_.get(), kNone.data(), kNone.size(), static_cast<off_t>(place));
}

// What was reserved and not used goes, also what an attempt that failed has left, and what became
// of a block that could not be written.
bool BlockWriter::cut() {
  const std::lock_guard lock{reserving_};
  reserves_ = false;
  return !regular_ || ::ftruncate(fd_.get(), static_cast<off_t>(end_)) == 0;
}

void BlockWriter::flush() {
  if (!cut()) throw kit::system_failure(path_);
  if (::fdatasync(fd_.get()) != 0 && errno != EINVAL) throw kit::system_failure(path_);
}

}  // namespace weft::stream
