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
#include <vector>

#include "abi/rdmacm/ids.h"
#include "abi/rsockets/poll.h"
#include "abi/rsockets/table.h"

namespace weft::abi {
namespace {

using rsockets::Stream;

rsockets::Table& sockets() {
  static auto& table =
      *new rsockets::Table;  // threads of the program may use it until the very end
  return table;
}

// What `call` returns for the socket of that number: 0 or an errno value, as the program is told.
template <class Call>
int with(int socket, Call call) try {
  const std::shared_ptr<Stream> s = sockets().find(socket);
  return s == nullptr ? refuse(EBADF) : result(call(*s));
} catch (const std::bad_alloc&) {
  return refuse(ENOMEM);
}

template <class Call>
ssize_t move(int socket, const iovec* pieces, size_t count, Call call) try {
  const std::shared_ptr<Stream> s = sockets().find(socket);
  if (s == nullptr) return refuse(EBADF);
  const Stream::Moved moved = call(*s, rsockets::IovCursor{pieces, count});
  return moved.error != 0 ? refuse(moved.error) : static_cast<ssize_t>(moved.bytes);
} catch (const std::bad_alloc&) {
  return refuse(ENOMEM);
}

ssize_t send_pieces(int socket, const iovec* pieces, size_t count, int flags) {
  return move(socket, pieces, count,
              [flags](Stream& s, rsockets::IovCursor from) { return s.send(from, flags); });
}

ssize_t receive_pieces(int socket, const iovec* pieces, size_t count, int flags) {
  return move(socket, pieces, count,
              [flags](Stream& s, rsockets::IovCursor to) { return s.receive(to, flags); });
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

extern "C" {

int rsocket(int domain, int type, int protocol) try {
  const int kind = type & ~(SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (domain != AF_INET && domain != AF_INET6) return refuse(EAFNOSUPPORT);
  if (kind != SOCK_STREAM || (protocol != 0 && protocol != IPPROTO_TCP)) {
    connections().say_unsupported("rsocket() of a type other than SOCK_STREAM");
    return refuse(EOPNOTSUPP);
  }
  auto stream = std::make_shared<Stream>(domain);
  if (const int error = stream->open(); error != 0) return refuse(error);
  return keep(std::move(stream), (type & SOCK_NONBLOCK) != 0);
} catch (const std::bad_alloc&) {
  return refuse(ENOMEM);
}

int rbind(int socket, const sockaddr* addr, socklen_t) {
  return with(socket, [addr](Stream& s) { return s.bind(addr); });
}

int rlisten(int socket, int backlog) {
  return with(socket, [backlog](Stream& s) { return s.listen(backlog); });
}

int raccept(int socket, sockaddr* addr, socklen_t* addrlen) try {
  std::shared_ptr<Stream> accepted;
  if (with(socket, [&accepted](Stream& s) { return s.accept(accepted); }) != 0) return -1;
  if (addr != nullptr && addrlen != nullptr) (void)accepted->peer_name(addr, addrlen);
  return keep(std::move(accepted), false);
} catch (const std::bad_alloc&) {
  return refuse(ENOMEM);
}

int rconnect(int socket, const sockaddr* addr, socklen_t) {
  return with(socket, [addr](Stream& s) { return s.connect(addr); });
}

int rshutdown(int socket, int how) {
  return with(socket, [how](Stream& s) { return s.shutdown(how); });
}

int rclose(int socket) try {
  const std::shared_ptr<Stream> s = sockets().take(socket);
  if (s == nullptr) return refuse(EBADF);
  s->close();
  return 0;
} catch (const std::bad_alloc&) {
  return refuse(ENOMEM);
}

ssize_t rrecv(int socket, void* buf, size_t len, int flags) {
  const iovec all = piece(buf, len);
  return receive_pieces(socket, &all, 1, flags);
}

ssize_t rrecvfrom(int socket, void* buf, size_t len, int flags, sockaddr* src_addr,
                  socklen_t* addrlen) {
  const ssize_t n = rrecv(socket, buf, len, flags);
  if (n > 0 && src_addr != nullptr) (void)rgetpeername(socket, src_addr, addrlen);
  return n;
}

ssize_t rrecvmsg(int socket, msghdr* msg, int flags) {
  if (msg == nullptr) return refuse(EFAULT);
  if (msg->msg_control != nullptr && msg->msg_controllen > 0) return refuse(EOPNOTSUPP);
  msg->msg_flags = 0;
  return receive_pieces(socket, msg->msg_iov, msg->msg_iovlen, flags);
}

ssize_t rsend(int socket, const void* buf, size_t len, int flags) {
  const iovec all = piece(buf, len);
  return send_pieces(socket, &all, 1, flags);
}

ssize_t rsendto(int socket, const void* buf, size_t len, int flags, const sockaddr* dest_addr,
                socklen_t addrlen) {
  if (dest_addr != nullptr || addrlen != 0) return refuse(EISCONN);
  return rsend(socket, buf, len, flags);
}

ssize_t rsendmsg(int socket, const msghdr* msg, int flags) {
  if (msg == nullptr) return refuse(EFAULT);
  if (msg->msg_control != nullptr && msg->msg_controllen > 0) return refuse(EOPNOTSUPP);
  return send_pieces(socket, msg->msg_iov, msg->msg_iovlen, flags);
}

ssize_t rread(int socket, void* buf, size_t count) {
  return rrecv(socket, buf, count, 0);
}

ssize_t rreadv(int socket, const iovec* iov, int iovcnt) {
  if (iovcnt < 0) return refuse(EINVAL);
  return receive_pieces(socket, iov, static_cast<size_t>(iovcnt), 0);
}

ssize_t rwrite(int socket, const void* buf, size_t count) {
  return rsend(socket, buf, count, 0);
}

ssize_t rwritev(int socket, const iovec* iov, int iovcnt) {
  if (iovcnt < 0) return refuse(EINVAL);
  return send_pieces(socket, iov, static_cast<size_t>(iovcnt), 0);
}

int rpoll(pollfd* fds, nfds_t nfds, int timeout) try {
  if (fds == nullptr && nfds > 0) return refuse(EFAULT);
  if (nfds > INT_MAX) return refuse(EINVAL);
  return weft::rsockets::poll(sockets(), fds, nfds, timeout);
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
  const int ready = weft::rsockets::poll(sockets(), fds.data(), fds.size(), ms);
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
  return with(socket, [=](Stream& s) { return s.peer_name(addr, addrlen); });
}

int rgetsockname(int socket, sockaddr* addr, socklen_t* addrlen) {
  return with(socket, [=](Stream& s) { return s.local_name(addr, addrlen); });
}

int rsetsockopt(int socket, int level, int optname, const void* optval, socklen_t optlen) {
  return with(socket, [=](Stream& s) { return s.set_option(level, optname, optval, optlen); });
}

int rgetsockopt(int socket, int level, int optname, void* optval, socklen_t* optlen) {
  return with(socket, [=](Stream& s) { return s.get_option(level, optname, optval, optlen); });
}

int rfcntl(int socket, int cmd, ...) try {
  va_list arguments;
  va_start(arguments, cmd);
  const int argument = cmd == F_SETFL || cmd == F_SETFD ? va_arg(arguments, int) : 0;
  va_end(arguments);
  const std::shared_ptr<Stream> s = sockets().find(socket);
  if (s == nullptr) return refuse(EBADF);
  switch (cmd) {
    case F_GETFL:
      return O_RDWR | (s->settings().nonblocking() ? O_NONBLOCK : 0);
    case F_SETFL:
      s->settings().set_nonblocking((argument & O_NONBLOCK) != 0);
      return 0;
    case F_GETFD:
    case F_SETFD:
      return fcntl(s->fd(), cmd, argument);
    default:
      return refuse(EOPNOTSUPP);
  }
} catch (const std::bad_alloc&) {
  return refuse(ENOMEM);
}

off_t riomap(int socket, void* buf, size_t len, int prot, int flags, off_t offset) {
  if (flags != 0 || (prot & ~PROT_WRITE) != 0) return refuse(EINVAL);
  std::optional<uint64_t> wanted;
  if (offset != -1) wanted = static_cast<uint64_t>(offset);
  uint64_t mapped = 0;
  const bool remote = (prot & PROT_WRITE) != 0;
  const int error =
      with(socket, [&](Stream& s) { return s.map(buf, len, remote, wanted, mapped); });
  return error != 0 ? error : static_cast<off_t>(mapped);
}

int riounmap(int socket, void* buf, size_t len) {
  return with(socket, [=](Stream& s) { return s.unmap(buf, len); });
}

size_t riowrite(int socket, const void* buf, size_t count, off_t offset, int flags) {
  const iovec all = piece(buf, count);
  return static_cast<size_t>(move(socket, &all, 1, [=](Stream& s, weft::rsockets::IovCursor from) {
    return s.write_mapped(from, static_cast<uint64_t>(offset), flags);
  }));
}

}  // extern "C"
