// Which descriptors of the program are connections. For all others a look costs one atomic load.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

namespace weft::sdp {

class Stream;

class Table {
 public:
  static std::shared_ptr<Stream> find(int fd) {
    if (static_cast<unsigned>(fd) >= kMost ||
        !present[static_cast<unsigned>(fd)].load(std::memory_order_acquire)) {
      return nullptr;
    }
    return look_up(fd);
  }
  // Behind all descriptors that were ever in it.
  static int end() { return highest.load(std::memory_order_relaxed) + 1; }
  // One beyond the table is relayed from now on, and so are 0, 1 and 2, which libc's stdio reads
  // and writes.
  static void put(int fd, const std::shared_ptr<Stream>& stream);
  // If it is a connection, whoever reads or writes it next is not this library.
  static void relay(int fd);
  // `to` is a copy of `from`, by dup(2) or the like.
  static void copy(int from, int to);
  // The program closes it, or puts something else there. With its last descriptor a stream ends.
  static void drop(int fd);
  static bool holds(const Stream& stream);
  static bool is_at(int fd, const Stream& stream);
  // One of its descriptors, or -1.
  static int descriptor_of(const Stream& stream);
  static void drop_range(unsigned first, unsigned last);
  // It has no descriptor any more.
  static void drop(const Stream& stream);
  // Forgets those of its descriptors that are not of the socket `cookie` any more: a program may
  // close by an instruction of its own, which nobody sees.
  static void drop_closed(const Stream& stream, uint64_t cookie);

  // When the library is loaded, by the process whose memory this is.
  static void begin();

  // In a child of vfork(), which shares this memory and has descriptors of its own: nothing is
  // changed, and what it copies is relayed, for the copy is another program's. So is what that
  // program will get when it is executed.
  static bool in_borrowed_memory();
  static void relay_what_is_inherited();

  // Before fork(): all that there are are relayed from now on. In the child: there are none.
  static void relay_all();
  static void forget_all();

 private:
  static constexpr unsigned kMost = 1 << 16;
  static std::shared_ptr<Stream> look_up(int fd);
  template <class If>
  static void drop_if(const Stream& stream, If goes);
  template <class Do>
  static void each(Do what);

  static inline std::array<std::atomic<bool>, kMost> present{};
  static inline std::atomic<int> highest{-1};  // written with the lock
};

}  // namespace weft::sdp
