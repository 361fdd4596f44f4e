// Connections that are TCP's, though the library was asked: what `weft stat` shows of them.
#pragma once

#include "sdp/rdma/fabric.h"
#include "sdp/stat/layout.h"

namespace weft::sdp {

class Fallbacks {
 public:
  // `fd` connects to `peer` by TCP, or was accepted from there.
  static void add(int fd, const Address& peer, bool server, Fallback why);
  // The program closes it, or puts something else there. Costs a load where there is none.
  static void drop(int fd) {
    if (count > 0) forget(fd);
  }
  static void drop_range(unsigned first, unsigned last) {
    if (count > 0) forget_range(first, last);
  }
  static void forget_in_child();

 private:
  static void forget_range(unsigned first, unsigned last);
  static void forget(int fd);
  static inline std::atomic<int> count{0};
};

}  // namespace weft::sdp
