#include "stream/control.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <stdexcept>

#include "cli/stop.h"
#include "kit/clock.h"
#include "kit/failure.h"
#include "kit/internet.h"

namespace weft::stream {
namespace {

std::string text_of(const sockaddr_in& address) {
  std::array<char, INET_ADDRSTRLEN> text{};
  ::inet_ntop(AF_INET, &address.sin_addr, text.data(), text.size());
  return text.data();
}

}  // namespace

void Control::send(const nlohmann::json& document) {
  const std::string text = kit::line_of(document);
  for (size_t at = 0; at < text.size();) {
    const ssize_t n = ::send(fd(), text.data() + at, text.size() - at, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR && !cli::stop_asked()) continue;
    if (n < 0) throw kit::system_failure("the other side of the control connection is gone");
    at += static_cast<size_t>(n);
  }
}

nlohmann::json Control::receive(int most_ms) {
  // Of the whole document: one that comes byte by byte is none.
  const int64_t until = kit::now_ns() + int64_t{most_ms} * 1'000'000;
  for (;;) {
    if (auto document = came_.next()) return std::move(*document);
    pollfd p{.fd = fd(), .events = POLLIN, .revents = 0};
    const int64_t left =
        std::max<int64_t>((cli::wait_until(until) - kit::now_ns() + 999'999) / 1'000'000, 0);
    const int ready = ::poll(&p, 1, most_ms < 0 ? -1 : static_cast<int>(left));
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) throw kit::Failure{"the other side does not answer"};
    std::array<char, 4096> piece{};
    const ssize_t n = ::recv(fd(), piece.data(), piece.size(), 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw kit::system_failure("the control connection broke");
    if (n == 0) throw kit::Failure{"the other side closed the control connection"};
    came_.add({piece.data(), static_cast<size_t>(n)});
  }
}

bool Control::readable() const {
  if (!came_.empty()) return true;
  pollfd p{.fd = fd(), .events = POLLIN, .revents = 0};
  return ::poll(&p, 1, 0) > 0;
}

std::string Control::peer_address() const {
  sockaddr_in address{};
  socklen_t length = sizeof address;
  if (::getpeername(fd(), reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    throw kit::system_failure("the control connection broke");
  }
  return text_of(address);
}

std::string Control::own_address() const {
  sockaddr_in address{};
  socklen_t length = sizeof address;
  if (::getsockname(fd(), reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    throw kit::system_failure("the control connection broke");
  }
  return text_of(address);
}

void Control::notice_when_gone() const {
  const int on = 1;
  ::setsockopt(fd(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  // A peer whose machine is gone says nothing.
  ::setsockopt(fd(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  const int seconds = 5;
  ::setsockopt(fd(), IPPROTO_TCP, TCP_KEEPIDLE, &seconds, sizeof seconds);
  ::setsockopt(fd(), IPPROTO_TCP, TCP_KEEPINTVL, &on, sizeof on);
  const timeval patience{.tv_sec = seconds, .tv_usec = 0};
  ::setsockopt(fd(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
}

void Control::shut() const {
  ::shutdown(fd(), SHUT_RDWR);
}

sockaddr_in resolve(const std::string& where, uint16_t usual_port) {
  const size_t colon = where.find(':');
  const std::string host = where.substr(0, colon);
  const std::string port =
      colon == std::string::npos ? std::to_string(usual_port) : where.substr(colon + 1);
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error = ::getaddrinfo(host.c_str(), port.c_str(), &hints, &found); error != 0) {
    const std::string sentence = "'" + host + "': " + ::gai_strerror(error);
    // A name server that does not answer may do so later. One that knows no such host will not.
    if (error == EAI_AGAIN) throw kit::Failure{sentence};
    throw std::runtime_error{sentence + ". Name the receiver's host as ADDRESS[:PORT]"};
  }
  const sockaddr_in address = *reinterpret_cast<const sockaddr_in*>(found->ai_addr);
  ::freeaddrinfo(found);
  return address;
}

Control connect_control(const sockaddr_in& to, const std::string& own_address,
                        const std::function<bool()>& over) {
  port::Fd fd = bound_socket(own_address, 0, SOCK_STREAM);
  if (::fcntl(fd.get(), F_SETFL, O_NONBLOCK) != 0) throw kit::system_failure("fcntl");
  int error = ::connect(fd.get(), kit::generic(to), sizeof to) == 0 ? 0 : errno;
  // Where the network drops what is sent, the kernel tries for two minutes.
  while (error == EINPROGRESS) {
    constexpr int kLookMs = 50;
    if (over()) throw kit::Failure{"the run is over before a receiver was found"};
    pollfd p{.fd = fd.get(), .events = POLLOUT, .revents = 0};
    if (::poll(&p, 1, kLookMs) <= 0) continue;
    socklen_t length = sizeof error;
    if (::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &length) != 0) error = errno;
  }
  if (error != 0) {
    errno = error;
    throw kit::system_failure("no receiver at " + text_of(to) + ":" +
                              std::to_string(ntohs(to.sin_port)));
  }
  if (::fcntl(fd.get(), F_SETFL, 0) != 0) throw kit::system_failure("fcntl");
  Control control{std::move(fd)};
  control.notice_when_gone();
  return control;
}

port::Fd bound_socket(const std::string& address, uint16_t port, int type) {
  port::Fd fd{::socket(AF_INET, type | SOCK_CLOEXEC, 0)};
  if (!fd.valid()) throw kit::system_failure("socket");
  const int on = 1;
  if (type == SOCK_STREAM) {
    // A receiver that was killed leaves connections behind that keep its port for a minute.
    ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  }
  const sockaddr_in own = kit::address_of(address.empty() ? "0.0.0.0" : address, port);
  if (::bind(fd.get(), kit::generic(own), sizeof own) != 0) {
    throw kit::system_failure("port " + std::to_string(port) + " of " + text_of(own));
  }
  return fd;
}

port::Fd listener(const std::string& address, uint16_t port) {
  port::Fd fd = bound_socket(address, port, SOCK_STREAM);
  if (::listen(fd.get(), SOMAXCONN) != 0) throw kit::system_failure("listen");
  return fd;
}

uint16_t own_port(const port::Fd& fd) {
  return kit::port_of(fd);
}

}  // namespace weft::stream
