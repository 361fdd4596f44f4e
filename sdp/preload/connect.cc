// socket(2), connect(2), listen(2) and accept(2).
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "sdp/preload/caller.h"
#include "sdp/preload/next.h"
#include "sdp/sockets/decide.h"
#include "sdp/sockets/library.h"
#include "sdp/sockets/listeners.h"
#include "sdp/sockets/real.h"
#include "sdp/sockets/registrations.h"

using namespace weft::sdp;

namespace {

void put_name(const Address& from, sockaddr* to, socklen_t* size) {
  if (to == nullptr || size == nullptr) return;
  std::memcpy(to, &from, std::min(*size, from.size()));
  *size = from.size();
}

int accepted(int fd, sockaddr* address, socklen_t* size) {
  if (fd < 0) return fd;
  Library* library = Library::existing();
  if (library == nullptr) return fd;
  const int error = errno;
  // The caller's size was changed by the kernel to that of the knock's name, which is of the same
  // family.
  if (const auto peer = library->accepted(fd)) put_name(*peer, address, size);
  errno = error;
  return fd;
}

}  // namespace

WEFT_SDP_EXPORT int socket(int family, int type, int protocol) noexcept {
  const int fd = WEFT_SDP_NEXT(socket)(family, type, protocol);
  const int kind = type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC);
  const bool tcp = (family == AF_INET || family == AF_INET6) && kind == SOCK_STREAM;
  if (fd >= 0 && tcp && WEFT_SDP_FOR_PROGRAM) Registrations::begin(fd);
  return fd;
}

WEFT_SDP_EXPORT int connect(int fd, const sockaddr* to, socklen_t size) {
  if (!WEFT_SDP_FOR_PROGRAM) return real().connect(fd, to, size);
  const int error = errno;
  if (Library* library = Library::existing()) {
    if (const auto again = library->connect_again(fd)) {
      if (*again != 0) errno = *again;
      return *again == 0 ? 0 : -1;
    }
  }
  const Use use = use_to_connect(fd, to, size);
  Library* library = use == Use::tcp ? nullptr : Library::get();
  if (library != nullptr) {
    Address target{};
    std::memcpy(&target, to, std::min<size_t>(size, sizeof target));
    switch (library->connect(fd, target)) {
      case Library::Outcome::connected:
        errno = error;
        return 0;
      case Library::Outcome::in_progress:
        errno = EINPROGRESS;
        return -1;
      case Library::Outcome::tcp:
        break;
    }
  }
  if (use == Use::sdp) {
    errno = ECONNREFUSED;
    return -1;
  }
  errno = error;
  return real().connect(fd, to, size);
}

WEFT_SDP_EXPORT int listen(int fd, int backlog) {
  const int status = real().listen(fd, backlog);
  if (status == 0 && WEFT_SDP_FOR_PROGRAM) Listeners::add(fd, backlog);
  return status;
}

WEFT_SDP_EXPORT int accept(int fd, sockaddr* address, socklen_t* size) {
  if (!WEFT_SDP_FOR_PROGRAM) return real().accept(fd, address, size);
  Listeners::about_to_wait(fd);
  return accepted(real().accept(fd, address, size), address, size);
}

WEFT_SDP_EXPORT int accept4(int fd, sockaddr* address, socklen_t* size, int flags) {
  if (!WEFT_SDP_FOR_PROGRAM) return real().accept4(fd, address, size, flags);
  Listeners::about_to_wait(fd);
  return accepted(real().accept4(fd, address, size, flags), address, size);
}
