// A file descriptor with one owner. weft's descriptors sit above 1023 where the limit allows, so
// that programs that use select(2) keep the low ones (spec/abi 5).
#pragma once

#include <utility>

namespace weft::port {

class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) {
      reset();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  ~Fd() { reset(); }

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }
  void reset();
  // A second descriptor of the same file, where raise() would put it. Not valid where the process
  // has none left; errno says so.
  Fd duplicate() const;

 private:
  int fd_ = -1;
};

// Moves `fd` above 1023 if that is possible, else leaves it where it is. Close-on-exec is set
// either way.
Fd raise(Fd fd);

}  // namespace weft::port
