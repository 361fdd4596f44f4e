// Writes blocks to their places in one file: all of it aligned, so that it can go past the page
// cache. Writes that make a file longer wait for each other in the file system, so that it is made
// longer ahead of them.
#pragma once

#include <sys/uio.h>
#include <weft/stream_ring.h>

#include <array>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>

#include "port/fd.h"

namespace weft::stream {

// Writes all of it, from `offset` on; negative: where the descriptor stands. Throws kit::Failure.
void write_all(int fd, std::span<iovec> pieces, int64_t offset);
iovec piece(const void* begin, size_t size);

// Of several threads.
class BlockWriter {
 public:
  // Of an open file, which is referred to; blocks begin at byte `begin`, and what is there behind
  // it goes. `path`: for messages.
  BlockWriter(const port::Fd& fd, std::string path, uint64_t begin);
  BlockWriter(const BlockWriter&) = delete;
  BlockWriter& operator=(const BlockWriter&) = delete;
  // What was reserved and not used goes.
  ~BlockWriter();

  // Whether blocks go past the page cache.
  bool direct() const { return direct_; }
  // `place`: among the bytes of the blocks. Throws kit::Failure; then the file has nothing there.
  void write(const weft_stream_block& block, const std::byte* data, uint64_t place);
  // It ends behind the last block that was written. False, and errno, where that cannot be.
  bool cut();
  // The same, and the disk has it. Throws kit::Failure.
  void flush();

 private:
  static constexpr uint64_t kAhead = 64 << 20;

  void put(std::array<iovec, 2> pieces, int64_t place);
  void reserve(uint64_t end);
  void take_back(uint64_t place);

  const port::Fd& fd_;
  const std::string path_;
  const uint64_t begin_;
  bool direct_ = false;
  bool regular_ = false;

  std::mutex reserving_;  // of what follows
  bool reserves_ = false;
  uint64_t reserved_ = 0;
  uint64_t end_ = 0;  // of the last block that was written
};

}  // namespace weft::stream
