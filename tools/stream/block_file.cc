#include "stream/block_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "kit/failure.h"
#include "port/fd.h"

namespace weft::stream {
namespace {

class BlockFile {
 public:
  BlockFile(const std::string& path, const weft_stream_ring& shape)
      : path_(path), shape_(shape), fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    struct stat st {};
    if (!fd_.valid() || ::fstat(fd_.get(), &st) != 0) throw kit::system_failure(path);
    size_ = static_cast<uint64_t>(st.st_size);
  }

  // From behind, as a file may have days of blocks. Behind the last block there may be room for
  // blocks that a receiver had no time to write before it was killed.
  uint64_t end() const {
    const uint64_t step = sizeof(weft_stream_block) + shape_.block_bytes;
    bool cut = false;
    for (uint64_t i = (size_ + step - 1) / step; i-- > 0;) {
      weft_stream_block header{};
      read(&header, sizeof header, i * step);
      if (is_empty(&header, sizeof header)) continue;
      if (!fits(header)) refuse();
      if ((i + 1) * step <= size_) return (i + 1) * step;
      cut = true;  // not whole: the next block takes its place
    }
    if (!cut && !is_empty()) refuse();
    return 0;
  }

  std::map<uint32_t, uint64_t> ends_of_streams(uint64_t end) const {
    const uint64_t step = sizeof(weft_stream_block) + shape_.block_bytes;
    const uint64_t last = end / step;
    const uint64_t most = std::min(last, uint64_t{shape_.streams} * shape_.blocks);
    std::map<uint32_t, uint64_t> ends;
    for (uint64_t i = 1; i <= most && ends.size() < shape_.streams; ++i) {
      weft_stream_block header{};
      read(&header, sizeof header, (last - i) * step);
      if (!fits(header) || header.stream >= shape_.streams) continue;
      ends.try_emplace(header.stream, (header.number + 1) * header.packets);
    }
    return ends;
  }

 private:
  // Zeroes take the place of what is not there. How much is.
  size_t read(void* to, size_t size, uint64_t at) const {
    size_t got = 0;
    while (got < size) {
      const ssize_t n = ::pread(fd_.get(), static_cast<char*>(to) + got, size - got,
                                static_cast<off_t>(at + got));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) throw kit::system_failure(path_);
      if (n == 0) break;
      got += static_cast<size_t>(n);
    }
    if (got < size) std::fill_n(static_cast<char*>(to) + got, size - got, '\0');
    return got;
  }
  static bool is_empty(const void* data, size_t size) {
    const auto* bytes = static_cast<const char*>(data);
    return std::all_of(bytes, bytes + size, [](char c) { return c == 0; });
  }
  bool is_empty() const {
    std::vector<char> part(1 << 20);
    for (uint64_t at = 0; read(part.data(), part.size(), at) > 0; at += part.size()) {
      if (!is_empty(part.data(), part.size())) return false;
    }
    return true;
  }
  bool fits(const weft_stream_block& b) const {
    return b.magic == WEFT_STREAM_MAGIC && b.packets == shape_.packets_per_block &&
           b.packet_bytes == shape_.packet_bytes && b.slot_bytes == shape_.slot_bytes &&
           b.block_bytes == shape_.block_bytes;
  }
  [[noreturn]] void refuse() const {
    weft_stream_block first{};
    read(&first, sizeof first, 0);
    const bool blocks = first.magic == WEFT_STREAM_MAGIC && !fits(first);
    throw kit::Failure{fmt::format(
        "{} holds {}, and not blocks of {} packets of {} bytes: --overwrite starts it anew, or "
        "name another file",
        path_,
        blocks ? fmt::format("blocks of {} packets of {} bytes", first.packets, first.packet_bytes)
               : "something else",
        shape_.packets_per_block, shape_.packet_bytes)};
  }

  const std::string& path_;
  const weft_stream_ring& shape_;
  port::Fd fd_;
  uint64_t size_ = 0;
};

}  // namespace

uint64_t end_of_blocks(const std::string& path, const weft_stream_ring& shape) {
  return BlockFile{path, shape}.end();
}

std::map<uint32_t, uint64_t> ends_of_streams(const std::string& path, const weft_stream_ring& shape,
                                             uint64_t end) {
  return BlockFile{path, shape}.ends_of_streams(end);
}

}  // namespace weft::stream
