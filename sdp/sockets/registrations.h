// What is done with sockets before they connect, for a mirror takes the place of one descriptor
// then. A registration of epoll(7) belongs to what that was before, and has to be made anew. A
// socket that has copies besides cannot be replaced.
#pragma once

#include <sys/epoll.h>

#include <array>
#include <atomic>
#include <map>
#include <memory>

namespace weft::sdp {

class Registrations {
 public:
  // When the library is loaded: a fork waits for a thread that is at it, for the child needs all of
  // it. Both sides have the sockets that its thread has made, from then on.
  static void keep_over_forks();
  // `fd` is a new TCP socket: what is done with it is kept until it connects or is closed.
  static void begin(int fd);
  // `to` is a copy of `from`, by dup(2) or the like.
  static void copy(int from, int to) {
    if (kept(from)) copy_kept(from, to);
  }
  // Somebody else knows it, too: stdio, or who gets it by SCM_RIGHTS.
  static void give_away(int fd) {
    if (kept(fd)) share(fd);
  }
  // Whether `fd` is not all that the program has of the socket.
  static bool has_copies(int fd) { return kept(fd) && is_shared(fd); }
  // A call of epoll_ctl(2) that succeeded. Costs a load for all but new TCP sockets.
  static void note(int epoll, int operation, int fd, const epoll_event* event) {
    if (kept(fd)) note_kept(epoll, operation, fd, event);
  }
  using OfSocket = std::map<int, epoll_event>;  // by the epoll's descriptor
  // Takes `fd` out of all of them, and, when it is another socket, puts it there again.
  static OfSocket take_out(int fd);
  static void put_back(int fd);
  // No more is to be kept of it.
  static void end(int fd) {
    if (kept(fd)) forget(fd);
  }

  static void end_range(unsigned first, unsigned last) {
    for (unsigned fd = first; fd <= last && fd < kMost; ++fd) end(static_cast<int>(fd));
  }

  // Whether an epoll waits for connections, or its number did once.
  static void note_connection(int epoll) {
    if (static_cast<unsigned>(epoll) < kMost) waits[static_cast<unsigned>(epoll)] = true;
  }
  static bool waits_for_connections(int epoll) {
    return static_cast<unsigned>(epoll) < kMost &&
           waits[static_cast<unsigned>(epoll)].load(std::memory_order_relaxed);
  }

 private:
  static constexpr unsigned kMost = 1 << 16;
  static bool kept(int fd) {
    return static_cast<unsigned>(fd) < kMost &&
           is_kept[static_cast<unsigned>(fd)].load(std::memory_order_acquire);
  }
  static void copy_kept(int from, int to);
  static void share(int fd);
  static bool is_shared(int fd);
  static void note_kept(int epoll, int operation, int fd, const epoll_event* event);
  static void forget(int fd);

  static inline std::array<std::atomic<bool>, kMost> is_kept{};
  static inline std::array<std::atomic<bool>, kMost> waits{};
};

}  // namespace weft::sdp
