#include "port/tcp_stream.h"

#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>

#include "base/log.h"
#include "config/options.h"
#include "port/calls.h"
#include "port/faults.h"
#include "port/socket_option.h"

#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE 71
#endif

namespace weft::port {

namespace {

bool set_congestion(int fd, const char* name) {
  return ::setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name,
                      static_cast<socklen_t>(std::strlen(name))) == 0;
}

}  // namespace

void set_type_of_service(const Fd& socket, uint8_t tos) {
  // A socket of IPv6 that talks to a mapped address has both; one of IPv4 has no second.
  set_option(socket.get(), IPPROTO_IP, IP_TOS, tos);
  set_option(socket.get(), IPPROTO_IPV6, IPV6_TCLASS, tos);
}

std::unique_ptr<TcpStream::Hooks> TcpStream::hooks_of_process() {
  Hooks hooks{.tap = TcpTap::of_process(), .faults = FaultyStream::of_process()};
  if (!hooks.tap && !hooks.faults) return nullptr;
  return std::make_unique<Hooks>(std::move(hooks));
}

TcpStream::TcpStream(Fd fd) : fd_(std::move(fd)), hooks_(hooks_of_process()) {
  set_option(fd_.get(), IPPROTO_TCP, TCP_NODELAY, 1);
}

Result<TcpStream, SystemError> TcpStream::connect(const Address& from, const Address& to,
                                                  std::optional<uint8_t> tos) {
  Fd fd = raise(Fd{calls::socket(to.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)});
  if (!fd.valid()) return fail(SystemError{errno, "socket"});
  if (from.valid() && (!from.is_any() || from.port() != 0)) {
    // Without this the bind would take a port from the whole host before the destination is known,
    // and run out.
    if (from.port() == 0)
      set_option(fd.get(), IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);
    else
      set_option(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1);
    if (::bind(fd.get(), from.get(), from.length) != 0) return fail(SystemError{errno, "bind"});
  }
  return connect_from(std::move(fd), to, tos);
}

Result<TcpStream, SystemError> TcpStream::connect_from(Fd bound, const Address& to,
                                                       std::optional<uint8_t> tos) {
  if (tos) port::set_type_of_service(bound, *tos);
  TcpStream stream{std::move(bound)};
  if (stream.tap() != nullptr) stream.tap()->connects();
  if (calls::connect(stream.fd(), to.get(), to.length) != 0 && errno != EINPROGRESS) {
    return fail(SystemError{errno, "connect"});
  }
  return stream;
}

int TcpStream::connect_result() const {
  int error = 0;
  socklen_t length = sizeof error;
  if (::getsockopt(fd(), SOL_SOCKET, SO_ERROR, &error, &length) != 0) return errno;
  return error;
}

void TcpStream::inject(const FaultSpec& spec) {
  if (!hooks_) hooks_ = std::make_unique<Hooks>();
  hooks_->faults = spec.nothing_for_streams()
                       ? nullptr
                       : std::make_unique<FaultyStream>(spec, faults::next_number());
}

TcpStream::Transfer TcpStream::send(std::span<const IoVec> pieces) const {
  if (hooks_) [[unlikely]]
    return hooked(trace::Direction::out, pieces);
  return send_now(pieces);
}

TcpStream::Transfer TcpStream::receive(std::span<const IoVec> pieces) const {
  if (hooks_) [[unlikely]]
    return hooked(trace::Direction::in, pieces);
  return receive_now(pieces);
}

TcpStream::Transfer TcpStream::hooked(trace::Direction direction,
                                      std::span<const IoVec> pieces) const {
  return hooks_->tap ? tapped(direction, pieces) : faulty(direction, pieces);
}

TcpStream::Transfer TcpStream::faulty(trace::Direction direction,
                                      std::span<const IoVec> pieces) const {
  FaultyStream* const faults = hooks_->faults.get();
  const bool out = direction == trace::Direction::out;
  if (faults != nullptr) {
    const auto part = out ? faults->before_send(pieces) : faults->before_receive(fd(), pieces);
    if (!part) return {.would_block = true};
    pieces = *part;
  }
  const Transfer t = out ? send_now(pieces) : receive_now(pieces);
  if (faults != nullptr) {
    if (out) {
      faults->sent(t.bytes);
    } else {
      faults->received(t.bytes);
    }
  }
  return t;
}

// What goes out has the time before the call, what comes in that behind it: so it is sent before it
// comes in the file of the other end, too.
TcpStream::Transfer TcpStream::tapped(trace::Direction direction,
                                      std::span<const IoVec> pieces) const {
  TcpTap& tap = *hooks_->tap;
  int64_t at = TcpTap::now();
  if (!tap.knows_ends()) tap.meet(at, local(), peer());
  const Transfer t = faulty(direction, pieces);
  if (direction == trace::Direction::in && !t.would_block) at = TcpTap::now();
  if (t.bytes > 0) {
    tap.moved(at, direction, pieces, t.bytes);
  } else if (t.end) {
    tap.peer_finished(at);
  } else if (t.error != 0) {
    tap.failed(at, t.error);
  }
  return t;
}

inline TcpStream::Transfer TcpStream::send_now(std::span<const IoVec> pieces) const {
  const int flags = MSG_NOSIGNAL | MSG_DONTWAIT | (calls_apart_ ? MSG_EOR : 0);
  for (;;) {
    ssize_t n;
    if (pieces.size() == 1) {
      n = calls::send(fd(), pieces[0].iov_base, pieces[0].iov_len, flags);
    } else {
      msghdr m{};
      m.msg_iov = const_cast<IoVec*>(pieces.data());
      m.msg_iovlen = pieces.size();
      n = calls::sendmsg(fd(), &m, flags);
    }
    if (n >= 0) return {.bytes = static_cast<size_t>(n)};
    if (errno == EINTR) continue;
    if (errno == EAGAIN || errno == ENOBUFS) return {.would_block = true};
    return {.error = errno};
  }
}

inline TcpStream::Transfer TcpStream::receive_now(std::span<const IoVec> pieces) const {
  for (;;) {
    ssize_t n;
    if (pieces.size() == 1) {
      n = calls::recv(fd(), pieces[0].iov_base, pieces[0].iov_len, MSG_DONTWAIT);
    } else {
      msghdr m{};
      m.msg_iov = const_cast<IoVec*>(pieces.data());
      m.msg_iovlen = pieces.size();
      n = calls::recvmsg(fd(), &m, MSG_DONTWAIT);
    }
    if (n > 0) return {.bytes = static_cast<size_t>(n)};
    if (n == 0) return {.end = true};
    if (errno == EINTR) continue;
    if (errno == EAGAIN) return {.would_block = true};
    return {.error = errno};
  }
}

void TcpStream::keep_alive(const Keepalive& keepalive) const {
  if (keepalive.idle > 0) {
    set_option(fd(), IPPROTO_TCP, TCP_KEEPIDLE, keepalive.idle);
    set_option(fd(), IPPROTO_TCP, TCP_KEEPINTVL, keepalive.interval);
    set_option(fd(), IPPROTO_TCP, TCP_KEEPCNT, keepalive.count);
  }
  set_option(fd(), IPPROTO_TCP, TCP_USER_TIMEOUT, keepalive.unacknowledged);
  set_option(fd(), SOL_SOCKET, SO_KEEPALIVE, keepalive.idle > 0 ? 1 : 0);
}

void TcpStream::shut_write() const {
  if (TcpTap* const t = tap()) t->finished(TcpTap::now());
  (void)::shutdown(fd(), SHUT_WR);
}

void TcpStream::reset() {
  if (TcpTap* const t = tap()) t->reset(TcpTap::now());
  const linger now{.l_onoff = 1, .l_linger = 0};
  (void)::setsockopt(fd(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
  close();
}

Address TcpStream::peer() const {
  Address a;
  a.length = sizeof a.storage;
  if (::getpeername(fd(), a.get(), &a.length) != 0) a.length = 0;
  return a;
}

std::optional<uint64_t> TcpStream::network_namespace() const {
  uint64_t cookie = 0;
  socklen_t length = sizeof cookie;
  if (::getsockopt(fd(), SOL_SOCKET, SO_NETNS_COOKIE, &cookie, &length) != 0) return {};
  return cookie;
}

uint32_t TcpStream::emss() const {
  tcp_info info{};
  socklen_t length = sizeof info;
  if (::getsockopt(fd(), IPPROTO_TCP, TCP_INFO, &info, &length) != 0) return 536;
  return info.tcpi_snd_mss;
}

TcpStream::Unacknowledged TcpStream::unacknowledged() const {
  tcp_info info{};
  socklen_t length = sizeof info;
  int bytes = 0;
  if (::ioctl(fd(), SIOCOUTQ, &bytes) != 0 ||
      ::getsockopt(fd(), IPPROTO_TCP, TCP_INFO, &info, &length) != 0) {
    return {};
  }
  // A first segment, which has no bytes, counts there alone.
  return {.any = bytes > 0 || info.tcpi_unacked > 0,
          .resent = info.tcpi_unacked > 0 ? info.tcpi_retransmits : 0U};
}

void TcpStream::choose_congestion_control() const {
  using config::Congestion;
  const Congestion wanted = config::options().congestion;
  switch (wanted) {
    case Congestion::keep:
      return;
    case Congestion::cubic:
    case Congestion::reno:
    case Congestion::bbr: {
      const char* name = wanted == Congestion::cubic  ? "cubic"
                         : wanted == Congestion::reno ? "reno"
                                                      : "bbr";
      if (!set_congestion(fd(), name)) {
        WEFT_LOG(warn,
                 "congestion=%s is not allowed for this user: %s. See "
                 "/proc/sys/net/ipv4/tcp_allowed_congestion_control",
                 name, std::strerror(errno));
      }
      return;
    }
    case Congestion::automatic:
      break;
  }
  char current[16] = "";
  socklen_t length = sizeof current;
  if (::getsockopt(fd(), IPPROTO_TCP, TCP_CONGESTION, current, &length) != 0 ||
      std::strncmp(current, "bbr", 3) != 0) {
    return;
  }
  tcp_info info{};
  length = sizeof info;
  constexpr uint32_t kNear = 1000;  // us
  if (::getsockopt(fd(), IPPROTO_TCP, TCP_INFO, &info, &length) != 0 || info.tcpi_rtt > kNear)
    return;
  // cubic needs a privilege on some hosts, reno is always allowed.
  if (!set_congestion(fd(), "cubic")) (void)set_congestion(fd(), "reno");
}

void TcpStream::limit_unsent(int bytes) const {
  set_option(fd(), IPPROTO_TCP, TCP_NOTSENT_LOWAT, bytes);
}

}  // namespace weft::port
