// The other side of a queue pair as a bare TCP socket: speaks MPA and RDMAP byte by byte, or
// whatever else a test makes of it. Every wait is bounded.
#pragma once

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <optional>
#include <utility>

#include "tests/support/frames.h"
#include "tests/verbs/endpoint.h"
#include "wire/mpa_start.h"
#include "wire/wfrc.h"

namespace weft::test {

// An address of GID `gid`.
struct SocketAddress {
  SocketAddress(const ibv_gid& gid, uint16_t port) {
    Gid g;
    std::memcpy(g.raw.data(), gid.raw, sizeof gid.raw);
    if (g.is_ipv4()) {
      auto* in = reinterpret_cast<sockaddr_in*>(&storage);
      in->sin_family = AF_INET;
      in->sin_port = htons(port);
      in->sin_addr.s_addr = htonl(g.ipv4());
      length = sizeof *in;
    } else {
      auto* in = reinterpret_cast<sockaddr_in6*>(&storage);
      in->sin6_family = AF_INET6;
      in->sin6_port = htons(port);
      std::memcpy(&in->sin6_addr, gid.raw, sizeof gid.raw);
      length = sizeof *in;
    }
  }
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
  int family() const { return storage.ss_family; }
  sockaddr_storage storage{};
  socklen_t length = 0;
};

class RawPeer {
 public:
  explicit RawPeer(int fd) : fd_(fd) {
    const int on = 1;
    setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  // From the address of `gid` to a port of the same host.
  static RawPeer connect(const ibv_gid& gid, uint16_t port) { return connect(gid, gid, port); }
  static RawPeer connect(const ibv_gid& own, const ibv_gid& gid, uint16_t port) {
    SocketAddress to(gid, port);
    SocketAddress from(own, 0);
    RawPeer peer(socket(to.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
    check(bind(peer.fd_, from.get(), from.length) == 0, "bind");
    check(::connect(peer.fd_, to.get(), to.length) == 0, "connect");
    return peer;
  }
  ~RawPeer() { close(); }
  RawPeer(RawPeer&& o) noexcept : fd_(std::exchange(o.fd_, -1)), heard_(std::move(o.heard_)) {}
  RawPeer& operator=(RawPeer&&) = delete;

  void close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }
  void reset() {
    const linger now{.l_onoff = 1, .l_linger = 0};
    setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    close();
  }
  void fin() { shutdown(fd_, SHUT_WR); }

  // What the other side does not want any more is lost.
  void says(Bytes bytes) {
    while (!bytes.empty() && await(POLLOUT)) {
      const ssize_t n = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (n <= 0) return;
      bytes = bytes.subspan(static_cast<size_t>(n));
    }
  }
  void says_ulpdu(Bytes ulpdu) { says(make_fpdu(ulpdu)); }

  // The next `n` bytes; fewer when the other side closes or stays silent.
  Buffer hears(size_t n) {
    while (heard_.size() < n && read_some()) {
    }
    n = std::min(n, heard_.size());
    Buffer bytes(heard_.begin(), heard_.begin() + static_cast<ptrdiff_t>(n));
    heard_.erase(heard_.begin(), heard_.begin() + static_cast<ptrdiff_t>(n));
    return bytes;
  }
  // One FPDU; empty when none comes.
  Buffer hears_fpdu() {
    Buffer frame = hears(wire::kFpduLengthSize);
    if (frame.size() < wire::kFpduLengthSize) return {};
    const Buffer rest = hears(wire::fpdu_size(load_be<uint16_t>(frame.data())) - frame.size());
    frame.insert(frame.end(), rest.begin(), rest.end());
    return frame;
  }
  // Bytes, or the end, are there.
  bool has_news() const {
    if (!heard_.empty()) return true;
    pollfd p{fd_, POLLIN, 0};
    return poll(&p, 1, 0) == 1;
  }
  bool is_reset() const {
    pollfd p{fd_, 0, 0};
    return poll(&p, 1, 0) == 1 && (p.revents & POLLERR) != 0;
  }
  // Has come, and waits in the kernel to be read.
  size_t unread() const {
    int n = 0;
    return ioctl(fd_, FIONREAD, &n) == 0 ? static_cast<size_t>(n) : 0;
  }
  // Reads nothing, until nothing more fits in between.
  void stops_reading() const {
    size_t last = 0;
    for (int still = 0; still < 20; usleep(10'000)) {
      const size_t now = unread();
      still = now > 0 && now == last ? still + 1 : 0;
      last = now;
    }
  }
  // Everything up to the end. Nothing when the end does not come within five seconds.
  std::optional<Buffer> hears_the_end() {
    while (read_some()) {
    }
    if (!ended_) return {};
    return std::move(heard_);
  }

 private:
  bool await(short events) {
    pollfd p{fd_, events, 0};
    return poll(&p, 1, 5000) == 1;
  }
  bool read_some() {
    if (ended_ || !await(POLLIN)) return false;
    std::byte bytes[4096];
    const ssize_t n = recv(fd_, bytes, sizeof bytes, 0);
    ended_ = n <= 0;
    if (n > 0) heard_.insert(heard_.end(), bytes, bytes + n);
    return n > 0;
  }

  int fd_;
  Buffer heard_;
  bool ended_ = false;
};

// A socket that listens on a port above those that the system gives away, so that a queue pair of
// this process has the lower number and dials, or from kLow on below them, and is dialled
// (spec/addressing 4).
class RawListener {
 public:
  static constexpr uint16_t kLow = 12'000;
  static constexpr uint16_t kHigh = 61'000;
  explicit RawListener(const ibv_gid& gid, uint16_t above = kHigh) {
    // Each process begins elsewhere: what one lets go, another is about to dial.
    const auto first = static_cast<uint16_t>(above + 4500 - getpid() % 4000);
    for (uint16_t port = first; port > above && fd_ < 0; --port) {
      SocketAddress at(gid, port);
      fd_ = socket(at.family(), SOCK_STREAM | SOCK_CLOEXEC, 0);
      if (bind(fd_, at.get(), at.length) == 0 && listen(fd_, 8) == 0) {
        port_ = port;
      } else {
        ::close(std::exchange(fd_, -1));
      }
    }
    check(fd_ >= 0, "no port to listen on");
  }
  ~RawListener() { ::close(fd_); }
  RawListener(const RawListener&) = delete;
  RawListener& operator=(const RawListener&) = delete;

  uint16_t port() const { return port_; }
  RawPeer accept() {
    pollfd p{fd_, POLLIN, 0};
    check(poll(&p, 1, 5000) == 1, "nobody dials");
    return RawPeer(::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC));
  }

 private:
  int fd_ = -1;
  uint16_t port_ = 0;
};

// --- start-up frames as they should be

inline Buffer start_frame(const wire::MpaStart& start, const wire::MpaEnhanced& enhanced,
                          const wire::Wfrc& block) {
  Buffer b(wire::MpaStart::kSize + wire::MpaEnhanced::kSize + wire::Wfrc::kSize);
  wire::MpaStart s = start;
  s.crc = s.enhanced = true;
  s.private_data_length = static_cast<uint16_t>(b.size() - wire::MpaStart::kSize);
  s.encode(b.data());
  enhanced.encode(b.data() + wire::MpaStart::kSize);
  block.encode(b.data() + wire::MpaStart::kSize + wire::MpaEnhanced::kSize);
  return b;
}
inline Gid gid_of(const ibv_gid& raw) {
  Gid g;
  std::memcpy(g.raw.data(), raw.raw, sizeof raw.raw);
  return g;
}
// spec/addressing 5.1: from queue pair `from` to `to`, both on the host of `gid`.
inline Buffer request_frame(const ibv_gid& gid, uint32_t from, uint32_t to, uint64_t nonce,
                            bool extension = true) {
  return start_frame({.kind = wire::MpaStart::Kind::request, .extension_requested = extension},
                     {.peer_to_peer = true, .rtr_write = true, .ird = 4, .ord = 4},
                     {.source_qpn = Qpn{from},
                      .destination_qpn = Qpn{to},
                      .nonce = nonce,
                      .source_gid = gid_of(gid),
                      .destination_gid = gid_of(gid)});
}
inline Buffer reply_frame(const ibv_gid& gid, uint32_t from, uint32_t to) {
  return start_frame({.kind = wire::MpaStart::Kind::reply},
                     {.peer_to_peer = true, .rtr_write = true, .ird = 4, .ord = 4},
                     {.source_qpn = Qpn{from},
                      .destination_qpn = Qpn{to},
                      .source_gid = gid_of(gid),
                      .destination_gid = gid_of(gid)});
}

}  // namespace weft::test
