// Files that are read from their begin to their end: as they are, or decompressed where the name
// ends in ".zst" (zstd). Pipes and devices too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace weft::stream {

class ByteInput {
 public:
  ByteInput() = default;
  ByteInput(const ByteInput&) = delete;
  ByteInput& operator=(const ByteInput&) = delete;
  virtual ~ByteInput() = default;
  // Some bytes, at most as many as there is room for; 0 at the end. A compressed file that was cut
  // off ends where it was. Throws kit::Failure for one that is damaged, or cannot be read.
  virtual size_t read(std::span<std::byte> to) = 0;
  // By any thread: a read() that waits for a pipe returns 0 soon, and so do all that follow.
  virtual void stop() = 0;
};

bool is_compressed(const std::string& path);
// From byte `offset` on, of a file that is not compressed. Throws kit::Failure.
std::unique_ptr<ByteInput> open_input(const std::string& path, uint64_t offset = 0);

}  // namespace weft::stream
