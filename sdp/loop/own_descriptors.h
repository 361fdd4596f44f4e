// The numbers of the descriptors that are the library's and the adapter's, not the program's. A
// program that closes descriptors that it does not know, as daemons do (closefrom(3)), leaves these
// open: to it they are numbers that are not in use.
//
// Takes no lock and no memory. A number beyond the table is not known.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

namespace weft::sdp {

class OwnDescriptors {
 public:
  static constexpr unsigned kMost = 1 << 16;

  static void add(int fd);
  // Before it is closed: the number may be the program's at once.
  static void drop(int fd);
  static bool has(int fd) {
    const auto n = static_cast<unsigned>(fd);
    return n < kMost && (words[n / kBits].load(std::memory_order_relaxed) >> n % kBits & 1) != 0;
  }
  // The lowest one from `first` on; kMost: there is none.
  static unsigned next(unsigned first);
  // A child has copies, which nobody uses.
  static void forget_all();

 private:
  static constexpr unsigned kBits = 64;
  static inline std::array<std::atomic<uint64_t>, kMost / kBits> words{};
};

}  // namespace weft::sdp
