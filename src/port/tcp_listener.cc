#include "port/tcp_listener.h"

#include <atomic>
#include <cerrno>

#include "base/log.h"
#include "port/calls.h"
#include "port/socket_option.h"

namespace weft::port {

Result<TcpListener, SystemError> TcpListener::bind(const Address& at, bool only_ipv6) {
  TcpListener l;
  l.fd_ = raise(Fd{calls::socket(at.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)});
  if (!l.fd_.valid()) return fail(SystemError{errno, "socket"});
  set_option(l.fd(), SOL_SOCKET, SO_REUSEADDR, 1);
  set_families(l.fd(), at, only_ipv6);
  if (::bind(l.fd(), at.get(), at.length) != 0) return fail(SystemError{errno, "bind"});
  return l;
}

Result<Ok, SystemError> TcpListener::start(int backlog) const {
  if (::listen(fd(), backlog) != 0) return fail(SystemError{errno, "listen"});
  return Ok{};
}

Result<TcpListener, SystemError> TcpListener::listen(const Address& at, int backlog) {
  auto l = bind(at);
  if (!l.ok()) return l;
  if (auto started = l->start(backlog); !started.ok()) return fail(started.error());
  return l;
}

std::optional<TcpStream> TcpListener::accept() const {
  // Said once for each time that descriptors run out, and not for each try.
  static std::atomic<bool> said{false};
  for (;;) {
    const int fd = calls::accept4(this->fd(), SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
      said.store(false, std::memory_order_relaxed);
      return TcpStream{raise(Fd{fd})};
    }
    // A connection that died in the queue is not worth a word; accept(2) asks to try again on
    // network errors.
    if (errno == EINTR || errno == ECONNABORTED || errno == EPROTO || errno == ENETDOWN ||
        errno == EHOSTDOWN || errno == EHOSTUNREACH || errno == ENETUNREACH) {
      continue;
    }
    if ((errno == EMFILE || errno == ENFILE) && !said.exchange(true, std::memory_order_relaxed)) {
      WEFT_LOG(warn, "no file descriptor left for an incoming connection (%s): raise `ulimit -n`",
               std::strerror(errno));
    }
    return {};
  }
}

}  // namespace weft::port
