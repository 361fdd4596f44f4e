#include "abi/rsockets/datagrams.h"

#include <rdma/rsocket.h>

#include <cerrno>

namespace weft::rsockets {

int Datagrams::set_option(int level, int name, const void* value, socklen_t size) {
  if (level != SOL_RDMA) return ::setsockopt(fd(), level, name, value, size) == 0 ? 0 : errno;
  const std::lock_guard guard{lock_};
  return settings_.set(level, name, value, size);
}

int Datagrams::get_option(int level, int name, void* value, socklen_t* size) {
  if (level != SOL_RDMA) return ::getsockopt(fd(), level, name, value, size) == 0 ? 0 : errno;
  const std::lock_guard guard{lock_};
  return settings_.get(level, name, value, size);
}

}  // namespace weft::rsockets
