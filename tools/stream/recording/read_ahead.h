// Reads a file before its bytes are asked for, in a thread of its own: a disk, or a decompression,
// that takes its time holds up nobody who reads no faster on the average.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "stream/recording/byte_input.h"

namespace weft::stream {

class ReadAhead {
 public:
  explicit ReadAhead(std::unique_ptr<ByteInput> input);
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;
  ~ReadAhead();
  // Fills `to`, and waits for it; with fewer bytes at the end, or when the program was asked to
  // stop. Throws kit::Failure where the file cannot be read, behind what could be.
  size_t read(std::span<std::byte> to);

 private:
  static constexpr size_t kPiece = 256 << 10;
  static constexpr size_t kMostAhead = 8 << 20;

  void work();

  const std::unique_ptr<ByteInput> input_;
  std::vector<std::byte> piece_;  // that is being read out
  size_t at_ = 0;

  std::mutex mutex_;  // of what follows, up to the blank line
  std::condition_variable changed_;
  std::deque<std::vector<std::byte>> pieces_;
  size_t ahead_ = 0;  // bytes in them
  bool ended_ = false;
  bool stopping_ = false;
  std::string error_;

  std::thread thread_;
};

}  // namespace weft::stream
