#include "port/port_inquiry.h"

#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "port/calls.h"

namespace weft::port {

Result<Fd, SystemError> PortInquiry::socket(const Address& there, const Address& from, int type) {
  Fd fd = raise(Fd{calls::socket(there.family(), type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)});
  if (!fd.valid()) return fail(SystemError{errno, "socket"});
  if (from.valid() && ::bind(fd.get(), from.get(), from.length) != 0)
    return fail(SystemError{errno, "bind"});
  return fd;
}

Result<PortInquiry, SystemError> PortInquiry::ask(const Address& there, const Address& from,
                                                  Bytes question) {
  auto fd = socket(there, from, SOCK_DGRAM);
  if (!fd.ok()) return fail(fd.error());
  if (calls::connect(fd->get(), there.get(), there.length) != 0) {
    return fail(SystemError{errno, "connect"});
  }
  if (calls::send(fd->get(), question.data(), question.size(), MSG_NOSIGNAL) < 0) {
    return fail(SystemError{errno, "send"});
  }
  return PortInquiry{std::move(*fd)};
}

Result<PortInquiry, SystemError> PortInquiry::ask_by_tcp(const Address& there,
                                                         const Address& from) {
  auto fd = socket(there, from, SOCK_STREAM);
  if (!fd.ok()) return fail(fd.error());
  PortInquiry inquiry{std::move(*fd)};
  if (calls::connect(inquiry.fd(), there.get(), there.length) != 0 && errno != EINPROGRESS) {
    if (errno != ECONNREFUSED) return fail(SystemError{errno, "connect"});
    inquiry.refused_ = true;  // of this host, where the answer is there at once
  }
  return inquiry;
}

bool PortInquiry::closed() {
  if (std::exchange(refused_, false)) return true;
  int error = 0;
  socklen_t size = sizeof error;
  return ::getsockopt(fd_.get(), SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == ECONNREFUSED;
}

}  // namespace weft::port
