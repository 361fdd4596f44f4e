// Which descriptors listen, for SDP, too. Many servers listen in one process and accept in its
// children: one that forks before it has waited for a listener leaves SDP to whoever waits first.
#pragma once

#include <sys/types.h>

#include "sdp/sockets/library.h"

namespace weft::sdp {

class Listeners {
 public:
  // `fd` listens since now.
  static void add(int fd, int backlog);
  // The process is about to wait for `fd`. Costs a load where no listener waits to be waited for.
  static void about_to_wait(int fd) {
    if (fresh_count > 0) begin(fd);
  }
  // The program closes it, or puts something else there.
  static void drop(int fd);
  static void drop_range(unsigned first, unsigned last);
  // Whether `accepted`, which came to `fd` by TCP, is not wanted there. A wake-up connection
  // of another process looks like TCP of this host, so that such a connection is refused only by
  // the process that hears SDP.
  static bool refuses(int fd, int accepted);
  static bool any_fresh() { return fresh_count > 0; }

 private:
  static void begin(int fd);
  static void try_again_later(int fd, unsigned long long cookie);
  static void try_again(int fd, unsigned long long cookie);
  static void keep_or_stop(int fd, unsigned long long cookie, Library::Hearing* hearing);
  static void before_fork();
  static void forget_in_child();
  static inline int count = 0;
  static inline int fresh_count = 0;
};

}  // namespace weft::sdp
