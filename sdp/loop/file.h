// A file descriptor with one owner.
#pragma once

#include <utility>

namespace weft::sdp {

class File {
 public:
  File() = default;
  explicit File(int fd) : fd_(fd) {}
  File(File&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  File& operator=(File&& other) noexcept {
    if (this != &other) reset(std::exchange(other.fd_, -1));
    return *this;
  }
  ~File() { reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }
  void reset(int fd = -1);

 private:
  int fd_ = -1;
};

// Moves a descriptor that is the library's own out of the way of programs that count on low
// numbers. Programs that close those that they do not know leave it open from now on
// (own_descriptors.h). Close-on-exec.
File out_of_the_way(File file);

}  // namespace weft::sdp
