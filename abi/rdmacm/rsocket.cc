// rsocket(7): the calls, for programs that are linked to them. abi/rsockets is what they do.
#include <fcntl.h>
#include <netinet/in.h>
#include <rdma/rsocket.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdarg>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <vector>

#include "abi/rdmacm/ids.h"
#include "abi/rsockets/poll.h"
#include "abi/rsockets/table.h"
#include "base/kept_errno.h"

namespace weft::abi {
namespace {

using rsockets::Datagrams;
using rsockets::IovCursor;
using rsockets::Stream;
using Pieces = std::span<const iovec>;

rsockets::Table& sockets() {
  static auto& table =
      *new rsockets::Table;  // threads of the program may use it until the very end
  return table;
}

// What `call` returns for the stream of that number: 0 or an errno value, as the program is told.
// For datagrams what `kernel` does, as a call of the kernel.
template <class Call, class Kernel>
int with(int socket, Call call, Kernel kernel) try {
  return keeping_errno([&]() -> int {
    if (const auto s = sockets().find(socket)) return result(call(*s));
    const auto d = sockets().find_datagrams(socket);
    return d != nullptr ? kernel(*d) : refuse(EBADF);
  });
} catch (const std::bad_alloc&) {
  return refuse(ENOMEM);
}

// The same of a call that moves bytes.
template <class Call, class Kernel>
ssize_t move(int socket, Pieces pieces, Call call, Kernel kernel) try {
  return keeping_errno([&]() -> ssize_t {
    if (const auto s = sockets().find(socket)) {
      const Stream::Moved moved = call(*s, IovCursor{pieces.data(), pieces.size()});
      return moved.error != 0 ? refuse(moved.error) : static_cast<ssize_t>(moved.bytes);
    }
    const auto d = sockets().find_datagrams(socket);
    return d != nullptr ? kernel(*d) : refuse(EBADF);
  });
} catch (const std::bad_alloc&) {
  return refuse(ENOMEM);
}

template <class Kernel>
ssize_t send_pieces(int socket, Pieces from, int flags, Kernel kernel) {
  return move(
      socket, from, [flags](Stream& s, IovCursor what) { return s.send(what, flags); }, kernel);
}

template <class Kernel>
ssize_t receive_pieces(int socket, Pieces to, int flags, Kernel kernel) {
  return move(
      socket, to, [flags](Stream& s, IovCursor into) { return s.receive(into, flags); }, kernel);
}

// What only a stream has.
int refuse_datagrams(const Datagrams&) {
  return refuse(EOPNOTSUPP);
}

int open_datagrams(int domain, int type) {
  auto socket = std::make_shared<Datagrams>(domain, type);
  return socket->fd() < 0 ? -1 : sockets().add(std::move(socket));
}

iovec piece(const void* at, size_t size) {
  return {const_cast<void*>(at), size};
}

int keep(std::shared_ptr<Stream> stream, bool nonblocking) {
  stream->settings().set_nonblocking(nonblocking);
  return sockets().add(std::move(stream));
}

void add_to(std::vector<pollfd>& fds, int nfds, const fd_set* set, short event) {
  for (int fd = 0; set != nullptr && fd < nfds; ++fd) {
    if (!FD_ISSET(fd, set)) continue;
    if (fds.empty() || fds[static_cast<size_t>(fd)].fd != fd)
      fds[static_cast<size_t>(fd)] = {fd, 0, 0};
    fds[static_cast<size_t>(fd)].events |= event;
  }
}

// Rounded up, and no more than an int has.
int milliseconds_of(const timeval& t) {
  constexpr time_t kMost = INT_MAX / 1000 - 1;
  return static_cast<int>(std::min(t.tv_sec, kMost) * 1000 +
                          std::min<suseconds_t>((t.tv_usec + 999) / 1000, 1000));
}

int take_from(const std::vector<pollfd>& fds, fd_set* set, int events) {
  int ready = 0;
  if (set == nullptr) return 0;
  for (size_t fd = 0; fd < fds.size(); ++fd) {
    if (!FD_ISSET(fd, set)) continue;
    if ((fds[fd].revents & events) != 0) {
      ++ready;
    } else {
      FD_CLR(fd, set);
    }
  }
  return ready;
}

}  // namespace
}  // namespace weft::abi

using namespace weft::abi;
using weft::keeping_errno;

extern "C" {

int rsocket(int domain, int type, int protocol) try {
  const int kind = type & ~(SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (domain != AF_INET && domain != AF_INET6) return refuse(EAFNOSUPPORT);
  if (kind == SOCK_DGRAM && (protocol == 0 || protocol == IPPROTO_UDP)) {
    return open_datagrams(domain, type);
  }
  if (kind != SOCK_STREAM || (protocol != 0 && protocol != IPPROTO_TCP)) {
    connections().say_unsupported("rsocket() of a type other than SOCK_STREAM and SOCK_DGRAM");
    return refuse(EOPNOTSUPP);
  }
  auto stream = std::make_shared<Stream>(domain);
  if (const int error = stream->open(); error != 0) return refuse(error);
  return keep(std::move(stream), (type & SOCK_NONBLOCK) != 0);
} catch (const std::bad_alloc&) {
  return refuse(ENOMEM);
}

int rbind(int socket, const sockaddr* addr, socklen_t addrlen) {
  return with(
      socket, [=](Stream& s) { return s.bind(addr); },
      [=](const Datagrams& d) { return ::bind(d.fd(), addr, addrlen); });
}

int rlisten(int socket, int backlog) {
  return with(
      socket, [=](Stream& s) { return s.listen(backlog); }, refuse_datagrams);
}

int raccept(int socket, sockaddr* addr, socklen_t* addrlen) try {
  std::shared_ptr<Stream> accepted;
  const auto accept = [&accepted](Stream& s) { return s.accept(accepted); };
  if (with(socket, accept, refuse_datagrams) != 0) return -1;
  if (addr != nullptr && addrlen != nullptr) (void)accepted->peer_name(addr, addrlen);
  return keep(std::move(accepted), false);
} catch (const std::bad_alloc&) {
  return refuse(ENOMEM);
}

int rconnect(int socket, const sockaddr* addr, socklen_t addrlen) {
  return with(
      socket, [=](Stream& s) { return s.connect(addr); },
      [=](const Datagrams& d) { return ::connect(d.fd(), addr, addrlen); });
}

int rshutdown(int socket, int how) {
  return with(
      socket, [=](Stream& s) { return s.shutdown(how); },
      [=](const Datagrams& d) { return ::shutdown(d.fd(), how); });
}

int rclose(int socket) try {
  if (const auto s = sockets().take(socket)) {
    s->close();
    return 0;
  }
  return sockets().take_datagrams(socket) != nullptr ? 0 : refuse(EBADF);
} catch (const std::bad_alloc&) {
  return refuse(ENOMEM);
}

ssize_t rrecv(int socket, void* buf, size_t len, int flags) {
  const iovec all = piece(buf, len);
  return receive_pieces(socket, {&all, 1}, flags,
                        [=](const Datagrams& d) { return ::recv(d.fd(), buf, len, flags); });
}

ssize_t rrecvfrom(int socket, void* buf, size_t len, int flags, sockaddr* src_addr,
                  socklen_t* addrlen) {
  const iovec all = piece(buf, len);
  bool from_kernel = false;
  const ssize_t n = receive_pieces(socket, {&all, 1}, flags, [&](const Datagrams& d) {
    from_kernel = true;
    return ::recvfrom(d.fd(), buf, len, flags, src_addr, addrlen);
  });
  if (n > 0 && !from_kernel && src_addr != nullptr) (void)rgetpeername(socket, src_addr, addrlen);
  return n;
}

ssize_t rrecvmsg(int socket, msghdr* msg, int flags) {
  if (msg == nullptr) return refuse(EFAULT);
  const auto receive = [=](Stream& s, IovCursor to) -> Stream::Moved {
    if (msg->msg_control != nullptr && msg->msg_controllen > 0) return {.error = EOPNOTSUPP};
    msg->msg_flags = 0;
    return s.receive(to, flags);
  };
  return move(socket, {msg->msg_iov, msg->msg_iovlen}, receive,
              [=](const Datagrams& d) { return ::recvmsg(d.fd(), msg, flags); });
}

ssize_t rsend(int socket, const void* buf, size_t len, int flags) {
  const iovec all = piece(buf, len);
  return send_pieces(socket, {&all, 1}, flags,
                     [=](const Datagrams& d) { return ::send(d.fd(), buf, len, flags); });
}

ssize_t rsendto(int socket, const void* buf, size_t len, int flags, const sockaddr* dest_addr,
                socklen_t addrlen) {
  const iovec all = piece(buf, len);
  const auto send = [=](Stream& s, IovCursor from) -> Stream::Moved {
    if (dest_addr != nullptr || addrlen != 0) return {.error = EISCONN};
    return s.send(from, flags);
  };
  return move(socket, {&all, 1}, send, [=](const Datagrams& d) {
    return ::sendto(d.fd(), buf, len, flags, dest_addr, addrlen);
  });
}

ssize_t rsendmsg(int socket, const msghdr* msg, int flags) {
  if (msg == nullptr) return refuse(EFAULT);
  const auto send = [=](Stream& s, IovCursor from) -> Stream::Moved {
    if (msg->msg_control != nullptr && msg->msg_controllen > 0) return {.error = EOPNOTSUPP};
    return s.send(from, flags);
  };
  return move(socket, {msg->msg_iov, msg->msg_iovlen}, send,
              [=](const Datagrams& d) { return ::sendmsg(d.fd(), msg, flags); });
}

ssize_t rread(int socket, void* buf, size_t count) {
  return rrecv(socket, buf, count, 0);
}

ssize_t rreadv(int socket, const iovec* iov, int iovcnt) {
  if (iovcnt < 0) return refuse(EINVAL);
  return receive_pieces(socket, {iov, static_cast<size_t>(iovcnt)}, 0,
                        [=](const Datagrams& d) { return ::readv(d.fd(), iov, iovcnt); });
}

ssize_t rwrite(int socket, const void* buf, size_t count) {
  return rsend(socket, buf, count, 0);
}

ssize_t rwritev(int socket, const iovec* iov, int iovcnt) {
  if (iovcnt < 0) return refuse(EINVAL);
  return send_pieces(socket, {iov, static_cast<size_t>(iovcnt)}, 0,
                     [=](const Datagrams& d) { return ::writev(d.fd(), iov, iovcnt); });
}

int rpoll(pollfd* fds, nfds_t nfds, int timeout) try {
  if (fds == nullptr && nfds > 0) return refuse(EFAULT);
  if (nfds > INT_MAX) return refuse(EINVAL);
  return keeping_errno([=] { return weft::rsockets::poll(sockets(), fds, nfds, timeout); });
} catch (const std::bad_alloc&) {
  return refuse(ENOMEM);
}

int rselect(int nfds, fd_set* readfds, fd_set* writefds, fd_set* exceptfds, timeval* timeout) try {
  if (nfds < 0 || nfds > FD_SETSIZE) return refuse(EINVAL);
  std::vector<pollfd> fds(static_cast<size_t>(nfds), {-1, 0, 0});
  add_to(fds, nfds, readfds, POLLIN);
  add_to(fds, nfds, writefds, POLLOUT);
  add_to(fds, nfds, exceptfds, POLLPRI);
  if (timeout != nullptr && (timeout->tv_sec < 0 || timeout->tv_usec < 0)) return refuse(EINVAL);
  const int ms = timeout == nullptr ? -1 : milliseconds_of(*timeout);
  const int ready =
      keeping_errno([&] { return weft::rsockets::poll(sockets(), fds.data(), fds.size(), ms); });
  if (ready < 0) return ready;
  for (const pollfd& p : fds) {
    if ((p.revents & POLLNVAL) != 0) return refuse(EBADF);
  }
  return take_from(fds, readfds, POLLIN | POLLHUP | POLLERR) +
         take_from(fds, writefds, POLLOUT | POLLERR) + take_from(fds, exceptfds, POLLPRI);
} catch (const std::bad_alloc&) {
  return refuse(ENOMEM);
}

int rgetpeername(int socket, sockaddr* addr, socklen_t* addrlen) {
  return with(
      socket, [=](Stream& s) { return s.peer_name(addr, addrlen); },
      [=](const Datagrams& d) { return ::getpeername(d.fd(), addr, addrlen); });
}

int rgetsockname(int socket, sockaddr* addr, socklen_t* addrlen) {
  return with(
      socket, [=](Stream& s) { return s.local_name(addr, addrlen); },
      [=](const Datagrams& d) { return ::getsockname(d.fd(), addr, addrlen); });
}

int rsetsockopt(int socket, int level, int optname, const void* optval, socklen_t optlen) {
  const auto set = [=](auto& s) { return s.set_option(level, optname, optval, optlen); };
  return with(socket, set, [=](Datagrams& d) { return result(set(d)); });
}

int rgetsockopt(int socket, int level, int optname, void* optval, socklen_t* optlen) {
  const auto get = [=](auto& s) { return s.get_option(level, optname, optval, optlen); };
  return with(socket, get, [=](Datagrams& d) { return result(get(d)); });
}

int rfcntl(int socket, int cmd, ...) {
  va_list arguments;
  va_start(arguments, cmd);
  const int argument = cmd == F_SETFL || cmd == F_SETFD ? va_arg(arguments, int) : 0;
  va_end(arguments);
  if (cmd != F_GETFL && cmd != F_SETFL && cmd != F_GETFD && cmd != F_SETFD) {
    return with(
        socket, [](Stream&) { return EOPNOTSUPP; }, refuse_datagrams);
  }
  int answer = 0;
  const auto control = [&](Stream& s) {
    if (cmd == F_GETFL) {
      answer = O_RDWR | (s.settings().nonblocking() ? O_NONBLOCK : 0);
    } else if (cmd == F_SETFL) {
      s.settings().set_nonblocking((argument & O_NONBLOCK) != 0);
    } else {
      answer = ::fcntl(s.fd(), cmd, argument);
    }
    return answer < 0 ? errno : 0;
  };
  const auto kernel = [&](const Datagrams& d) {
    answer = ::fcntl(d.fd(), cmd, argument);
    return answer < 0 ? -1 : 0;
  };
  return with(socket, control, kernel) != 0 ? -1 : answer;
}

off_t riomap(int socket, void* buf, size_t len, int prot, int flags, off_t offset) {
  if (flags != 0 || (prot & ~PROT_WRITE) != 0) return refuse(EINVAL);
  std::optional<uint64_t> wanted;
  if (offset != -1) wanted = static_cast<uint64_t>(offset);
  uint64_t mapped = 0;
  const bool remote = (prot & PROT_WRITE) != 0;
  const auto map = [&](Stream& s) { return s.map(buf, len, remote, wanted, mapped); };
  const int error = with(socket, map, refuse_datagrams);
  return error != 0 ? error : static_cast<off_t>(mapped);
}

int riounmap(int socket, void* buf, size_t len) {
  return with(
      socket, [=](Stream& s) { return s.unmap(buf, len); }, refuse_datagrams);
}

size_t riowrite(int socket, const void* buf, size_t count, off_t offset, int flags) {
  const iovec all = piece(buf, count);
  const auto write = [=](Stream& s, IovCursor from) {
    return s.write_mapped(from, static_cast<uint64_t>(offset), flags);
  };
  return static_cast<size_t>(move(socket, {&all, 1}, write, refuse_datagrams));
}

}  // extern "C"
