// A kernel that cannot do what most can. The system calls of the whole program pass through
// refusing_kernel.cc, those of the libraries that it is linked with too, and find a kernel as it is
// until a test says otherwise: before the library opens its sockets, so in a process of its own.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace weft::test {

struct RefusingKernel {
  // What Linux lets a process without rights have as a socket's buffer, unless told otherwise.
  static constexpr int kUsualBuffer = 212'992;
  std::atomic<bool> usual_buffers = false;
  // No UDP_GRO.
  std::atomic<bool> gathers = true;
  // False: sendmsg(2) with UDP_SEGMENT says EIO, as where a device cannot sum (`ethtool -K DEVICE
  // tx off`) or a route encrypts.
  std::atomic<bool> segments = true;
  // UDP payload that the path carries; 0: any.
  std::atomic<size_t> path = 0;
  // No memory for what is sent (ENOBUFS): the first three calls that send, and every other one
  // after these.
  std::atomic<bool> short_of_memory = false;

  // What was asked of it.
  std::atomic<uint64_t> gathering_refused = 0;  // sockets
  std::atomic<uint64_t> trains = 0;             // with UDP_SEGMENT, refused ones too
  std::atomic<uint64_t> one_by_one = 0;         // sendmmsg(2) of two datagrams or more
  std::atomic<uint64_t> sends_short = 0;        // while it was short of memory
  std::atomic<uint64_t> memory_refused = 0;
};
extern RefusingKernel refusing_kernel;

}  // namespace weft::test
