#include "bench/tcp_socket.h"

#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "bench/sdp_modes.h"
#include "config/options.h"
#include "kit/failure.h"
#include "kit/internet.h"

namespace weft::bench {
namespace {

bool set_congestion(int fd, const std::string& name) {
  return ::setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name.data(),
                      static_cast<socklen_t>(name.size())) == 0;
}

// As weft's streams choose it for a peer that is close by (option congestion), so that the two are
// compared and not two algorithms.
void choose_congestion(int fd) {
  using config::Congestion;
  switch (config::options().congestion) {
    case Congestion::keep:
      return;
    case Congestion::cubic:
      (void)set_congestion(fd, "cubic");
      return;
    case Congestion::reno:
      (void)set_congestion(fd, "reno");
      return;
    case Congestion::bbr:
      (void)set_congestion(fd, "bbr");
      return;
    case Congestion::automatic:
      break;
  }
  if (!congestion_of(fd).starts_with("bbr")) return;
  if (!set_congestion(fd, "cubic")) (void)set_congestion(fd, "reno");
}

}  // namespace

std::string congestion_of(int fd) {
  std::array<char, 16> name{};
  socklen_t length = name.size();
  if (::getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name.data(), &length) != 0) return {};
  return name.data();
}

ProgramSocket::ProgramSocket(port::Fd fd) : fd_(fd.release()) {}

void ProgramSocket::reset() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

port::Fd connect_tcp(const Order& order, const Channel& peer) {
  port::Fd fd;
  if (order.role == Role::target) {
    const port::Fd listener = kit::new_socket(order.address, SOCK_STREAM);
    if (::listen(listener.get(), 1) != 0) throw kit::system_failure("listen");
    peer.send({{"address", order.address}, {"port", kit::port_of(listener)}});
    fd = port::Fd{::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC)};
    if (!fd.valid()) throw kit::system_failure("accept");
  } else {
    const nlohmann::json where = peer.receive();
    const sockaddr_in to = kit::address_of(where.at("address"), where.at("port"));
    fd = kit::new_socket(order.address, SOCK_STREAM);
    if (::connect(fd.get(), kit::generic(to), sizeof to) != 0) {
      throw kit::system_failure("connect to " + where.at("address").get<std::string>());
    }
  }
  const int on = 1;
  (void)::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  choose_congestion(fd.get());
  const SdpMode* mode = find_sdp_mode(order.spec.sockets);
  // libweft-sdp.so leaves to the kernel what is spliced. This call itself comes to nothing.
  if (mode != nullptr && mode->relayed) (void)::splice(fd.get(), nullptr, -1, nullptr, 0, 0);
  return fd;
}

port::Fd connect_unix(const Order& order, const Channel& peer) {
  sockaddr_un at{.sun_family = AF_UNIX, .sun_path = {}};
  socklen_t length = sizeof(sa_family_t);  // no name yet: the kernel chooses one without a file
  port::Fd fd{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  if (!fd.valid()) throw kit::system_failure("socket");
  auto* const generic = reinterpret_cast<sockaddr*>(&at);
  if (order.role == Role::initiator) {
    const std::string name = peer.receive();
    std::copy(name.begin(), name.end(), at.sun_path + 1);
    length += static_cast<socklen_t>(name.size() + 1);
    if (::connect(fd.get(), generic, length) != 0) throw kit::system_failure("connect");
    return fd;
  }
  if (::bind(fd.get(), generic, length) != 0) throw kit::system_failure("bind");
  if (::listen(fd.get(), 1) != 0) throw kit::system_failure("listen");
  length = sizeof at;
  if (::getsockname(fd.get(), generic, &length) != 0) throw kit::system_failure("getsockname");
  peer.send(std::string(at.sun_path + 1, length - sizeof(sa_family_t) - 1));
  port::Fd accepted{::accept4(fd.get(), nullptr, nullptr, SOCK_CLOEXEC)};
  if (!accepted.valid()) throw kit::system_failure("accept");
  return accepted;
}

void send_all(int fd, const std::byte* p, uint64_t n, int flags) {
  while (n > 0) {
    const ssize_t sent = ::send(fd, p, n, MSG_NOSIGNAL | flags);
    if (sent < 0) {
      if (errno == EINTR) continue;
      throw kit::system_failure("send");
    }
    p += sent;
    n -= static_cast<uint64_t>(sent);
  }
}

uint64_t receive_some(int fd, std::byte* p, uint64_t n, Wait wait) {
  const int flags = wait == Wait::poll ? MSG_DONTWAIT : 0;
  for (;;) {
    const ssize_t received = ::recv(fd, p, n, flags);
    if (received >= 0) return static_cast<uint64_t>(received);
    if (errno != EINTR && errno != EAGAIN) throw kit::system_failure("recv");
  }
}

}  // namespace weft::bench
