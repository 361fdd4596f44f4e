// What one epoll of the program's is told of connections without the kernel. A token in a mirror
// costs four calls of the system for each message (design/32): one puts it in, one takes it out,
// and the epoll is asked in between. While the program's threads ask the epoll again and again, a
// connection with news stands in a list instead, and what epoll_ctl(2) changes is not told to the
// kernel yet. A thread that is about to sleep in the kernel has both done before.
//
// Only for an epoll that the program asks by the library's functions alone, by the number that it
// has. One that another process may have, that has a second number, or that others wait for is
// plain: all of it is the kernel's.
//
// Any thread. Whoever calls may hold the lock of a session, unless it is said; the set's own comes
// behind it.
#pragma once

#include <sys/epoll.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sdp/loop/handlers.h"

namespace weft::sdp {

class EpollSet {
 public:
  // The epoll that has this number, if a connection is known to it; else nullptr. They never end,
  // and are other epolls' later, which `age` tells.
  static EpollSet* find(int epoll);
  // Makes it where there is none. nullptr: the number is beyond the table.
  static EpollSet* make(int epoll);
  // The number is closed, or given to a new file.
  static void end(int epoll);
  static void end_range(unsigned first, unsigned last);
  // In a child of fork(2), which has no connections.
  static void forget_in_child();
  // Others than the library's functions may wait at it. Without the lock of a session.
  static void make_plain(int epoll);
  // Changes with each connection that is put into a list.
  static uint64_t news() { return g_news.load(std::memory_order_relaxed); }

  int number() const { return number_; }
  uint64_t age() const { return age_.load(std::memory_order_relaxed); }
  // The program asks it by the library's functions.
  void asked() {
    if (!asked_.load(std::memory_order_relaxed)) asked_ = true;
  }

  // `fd` is a connection that may have something for the epoll of this age: collect() looks. False:
  // nobody will, and the kernel is to tell of it.
  bool put(uint64_t age, int fd);
  // `fd` is registered in another way than the kernel knows, where `data` is. False: the kernel is
  // to know now.
  bool put_off(uint64_t age, int fd, uint64_t data);
  void told(int fd);

  // Whether there may be something to collect.
  bool has_news() const { return has_news_.load(std::memory_order_relaxed); }
  // Adds what is there to the `told` events that the kernel has told of, up to `most`; how many
  // there are then. -1 with EFAULT. Without the lock of a session.
  int collect(epoll_event* events, int most, int told);
  // The kernel, which alone knows of all else, was asked that long ago.
  using Clock = std::chrono::steady_clock;
  bool kernel_is_due() const { return Clock::now() >= kernel_due_.load(); }
  // `n` events that the kernel told of, set right where it does not know what is registered; how
  // many there are then. Without the lock of a session.
  int from_kernel(epoll_event* events, int n);

  // While there is one, a thread sleeps in the kernel, which knows all. Without the lock of a
  // session.
  class Asleep {
   public:
    explicit Asleep(EpollSet& set);
    Asleep(const Asleep&) = delete;
    Asleep& operator=(const Asleep&) = delete;
    ~Asleep() { --set_.asleep_; }

   private:
    EpollSet& set_;
  };

 private:
  struct PutOff {
    int fd;
    uint64_t data;  // of the kernel's registration
  };
  explicit EpollSet(int number) : number_(number) {}
  bool may_put_off(uint64_t age) const;
  int take_next(size_t& left);
  void tell_kernel(bool becomes_plain);

  static inline std::atomic<uint64_t> g_news{0};
  const int number_;
  std::atomic<uint64_t> age_{0};
  std::atomic<bool> asked_{false};
  std::atomic<bool> has_news_{false};
  std::atomic<int> asleep_{0};
  std::atomic<Clock::time_point> kernel_due_{};
  Mutex lock_;  // of what follows
  bool plain_ = false;
  std::vector<int> listed_;
  size_t taken_ = 0;  // of them
  std::vector<PutOff> put_off_;
};

}  // namespace weft::sdp
