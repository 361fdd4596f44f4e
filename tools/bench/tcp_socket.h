// The socket of a raw baseline, which weft's connections are compared with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "bench/channel.h"
#include "bench/work.h"
#include "port/fd.h"

namespace weft::bench {

// A socket that is closed by libc's close(2), as programs close theirs: what stands in the place of
// that function hears of it.
class ProgramSocket {
 public:
  ProgramSocket() = default;
  explicit ProgramSocket(port::Fd fd);
  ProgramSocket(ProgramSocket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  ProgramSocket& operator=(ProgramSocket&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~ProgramSocket() { reset(); }
  int get() const { return fd_; }
  void reset();

 private:
  int fd_ = -1;
};

// All throw kit::Failure.

// One connection between the two sides, without Nagle's algorithm.
port::Fd connect_tcp(const Order& order, const Channel& peer);
// The same by a socket that stays on the host.
port::Fd connect_unix(const Order& order, const Channel& peer);
// Empty when it cannot tell.
std::string congestion_of(int fd);
// `flags` as of send(2).
void send_all(int fd, const std::byte* p, uint64_t n, int flags = 0);
// Bytes read; 0 at the end of the stream.
uint64_t receive_some(int fd, std::byte* p, uint64_t n, Wait wait);

}  // namespace weft::bench
