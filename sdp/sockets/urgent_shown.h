// How a program learns of an urgent byte without asking: EPOLLPRI, and SIGURG. A mirror with an
// urgent byte in it would be readable as well, which a TCP socket is not. So the byte has a socket
// pair of its own, made when the first one comes, that the program's epolls wait at, too. poll(2)
// and select(2) are told by the library. Any thread.
#pragma once

#include <sys/epoll.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <utility>

#include "sdp/loop/file.h"
#include "sdp/loop/handlers.h"
#include "sdp/rdma/urgent_mark.h"

namespace weft::sdp {

class UrgentShown {
 public:
  UrgentShown() = default;
  UrgentShown(const UrgentShown&) = delete;
  UrgentShown& operator=(const UrgentShown&) = delete;
  ~UrgentShown() { close(); }

  // Whether an urgent byte has come to any connection of the process.
  static bool any() { return g_any.load(std::memory_order_relaxed); }

  // A call of epoll_ctl(2) on `fd`, a descriptor of the connection's, that succeeded.
  void note(int epoll, int operation, int fd, const epoll_event* event);
  // From now on, what comes is told by SIGURG to the owner of the program's descriptor (F_SETOWN).
  void signal(const UrgentMark& mark);

  // With the session's lock. Whether there is something to show of it.
  bool is_news(const UrgentMark& mark) const {
    return mark.count() != told_ || mark.waits() != shows_;
  }
  // Shows it; true if the byte is new. `owned`: a descriptor of the program's whose owner gets the
  // signal, or -1: nobody does.
  bool show(const UrgentMark& mark, int owned);

  void close();

 private:
  bool open();
  void wait_here(int epoll, const epoll_event& event);
  void drain();

  static inline std::atomic<bool> g_any{false};
  Mutex lock_;
  File inner_;  // the library's end
  File outer_;  // the program's epolls wait at it
  bool signals_ = false;
  bool closed_ = false;
  std::map<std::pair<int, int>, epoll_event> asked_;  // for EPOLLPRI, by epoll and descriptor
  // With the session's lock.
  uint64_t told_ = 0;
  bool shows_ = false;
};

}  // namespace weft::sdp
