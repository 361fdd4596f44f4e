// A socket of type SOCK_DGRAM: a UDP socket of the kernel's, and what rsocket(7) has beside it. UD
// of this adapter is UDP as well; a queue pair in between would add a header, and take away that a
// child of fork(2) has the socket, too, and that poll(2) knows it (spec/rsockets 7).
#pragma once

#include <unistd.h>

#include <mutex>

#include "abi/rsockets/settings.h"

namespace weft::rsockets {

// Any thread.
class Datagrams {
 public:
  // As socket(2): fd() is -1 where there is none, and errno says why.
  Datagrams(int domain, int type) : socket_(::socket(domain, type, 0)) {}
  ~Datagrams() {
    if (socket_ >= 0) ::close(socket_);
  }
  Datagrams(const Datagrams&) = delete;
  Datagrams& operator=(const Datagrams&) = delete;
  int fd() const { return socket_; }

  // As setsockopt(2) and getsockopt(2), with the options of rsockets besides. 0 or an errno value.
  int set_option(int level, int name, const void* value, socklen_t size);
  int get_option(int level, int name, void* value, socklen_t* size);

 private:
  const int socket_;
  std::mutex lock_;
  Settings settings_;  // of SOL_RDMA: kept for the program alone
};

}  // namespace weft::rsockets
