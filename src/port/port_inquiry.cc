#include "port/port_inquiry.h"

#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "port/calls.h"

namespace weft::port {

Result<PortInquiry, SystemError> PortInquiry::ask(const Address& there, const Address& from,
                                                  Bytes question) {
  Fd fd = raise(Fd{calls::socket(there.family(), SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)});
  if (!fd.valid()) return fail(SystemError{errno, "socket"});
  if (from.valid() && ::bind(fd.get(), from.get(), from.length) != 0)
    return fail(SystemError{errno, "bind"});
  if (calls::connect(fd.get(), there.get(), there.length) != 0) {
    return fail(SystemError{errno, "connect"});
  }
  if (calls::send(fd.get(), question.data(), question.size(), MSG_NOSIGNAL) < 0) {
    return fail(SystemError{errno, "send"});
  }
  return PortInquiry{std::move(fd)};
}

bool PortInquiry::closed() const {
  int error = 0;
  socklen_t size = sizeof error;
  return ::getsockopt(fd_.get(), SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == ECONNREFUSED;
}

}  // namespace weft::port
