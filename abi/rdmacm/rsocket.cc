// rsocket(7): the names, for programs that are linked to them. Each says EOPNOTSUPP.
#include <rdma/rsocket.h>

#include "abi/rdmacm/ids.h"

namespace weft::abi {
namespace {

int unsupported() {
  connections().say_unsupported("rsocket()");
  return refuse(EOPNOTSUPP);
}

}  // namespace
}  // namespace weft::abi

using weft::abi::unsupported;

extern "C" {

int rsocket(int, int, int) {
  return unsupported();
}
int rbind(int, const sockaddr*, socklen_t) {
  return unsupported();
}
int rlisten(int, int) {
  return unsupported();
}
int raccept(int, sockaddr*, socklen_t*) {
  return unsupported();
}
int rconnect(int, const sockaddr*, socklen_t) {
  return unsupported();
}
int rshutdown(int, int) {
  return unsupported();
}
int rclose(int) {
  return unsupported();
}
ssize_t rrecv(int, void*, size_t, int) {
  return unsupported();
}
ssize_t rrecvfrom(int, void*, size_t, int, sockaddr*, socklen_t*) {
  return unsupported();
}
ssize_t rrecvmsg(int, msghdr*, int) {
  return unsupported();
}
ssize_t rsend(int, const void*, size_t, int) {
  return unsupported();
}
ssize_t rsendto(int, const void*, size_t, int, const sockaddr*, socklen_t) {
  return unsupported();
}
ssize_t rsendmsg(int, const msghdr*, int) {
  return unsupported();
}
ssize_t rread(int, void*, size_t) {
  return unsupported();
}
ssize_t rreadv(int, const iovec*, int) {
  return unsupported();
}
ssize_t rwrite(int, const void*, size_t) {
  return unsupported();
}
ssize_t rwritev(int, const iovec*, int) {
  return unsupported();
}
int rpoll(pollfd*, nfds_t, int) {
  return unsupported();
}
int rselect(int, fd_set*, fd_set*, fd_set*, timeval*) {
  return unsupported();
}
int rgetpeername(int, sockaddr*, socklen_t*) {
  return unsupported();
}
int rgetsockname(int, sockaddr*, socklen_t*) {
  return unsupported();
}
int rsetsockopt(int, int, int, const void*, socklen_t) {
  return unsupported();
}
int rgetsockopt(int, int, int, void*, socklen_t*) {
  return unsupported();
}
int rfcntl(int, int, ...) {
  return unsupported();
}
off_t riomap(int, void*, size_t, int, int, off_t) {
  return unsupported();
}
int riounmap(int, void*, size_t) {
  return unsupported();
}
size_t riowrite(int, const void*, size_t, off_t, int) {
  return static_cast<size_t>(unsupported());
}

}  // extern "C"
