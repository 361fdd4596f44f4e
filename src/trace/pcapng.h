// The file format pcapng (draft-ietf-opsawg-pcapng): one section, one interface that carries bare
// IP packets, and a block for each packet with nanoseconds and its direction.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "trace/packet.h"

namespace weft::trace {

// What a file begins with. `comment` is for its readers.
std::vector<std::byte> file_head(std::string_view comment);

// What stands before and behind the bytes of a packet: together they are its block.
class BlockEnds {
 public:
  explicit BlockEnds(const Packet& packet);
  Bytes front() const { return front_; }
  Bytes back() const { return {back_.data(), back_size_}; }
  size_t block_size() const { return block_size_; }

 private:
  static constexpr size_t kFront = 28;
  static constexpr size_t kMostBack = 3 + 8 + 4 + 4;  // pad, direction, end of options, length
  std::array<std::byte, kFront> front_{};
  std::array<std::byte, kMostBack> back_{};
  size_t back_size_ = 0;
  size_t block_size_ = 0;
};

}  // namespace weft::trace
