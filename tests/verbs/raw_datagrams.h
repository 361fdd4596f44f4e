// The other side of UC and UD as a bare UDP socket: speaks WDP datagram by datagram, and sees each
// with the traffic class that it came with. Every wait is bounded.
#pragma once

#include <netinet/ip.h>

#include <array>

#include "tests/verbs/raw_peer.h"
#include "wire/wdp_ctl.h"
#include "wire/wdp_data.h"

namespace weft::test {

inline ibv_gid loopback_gid() {
  ibv_gid gid{};
  gid.raw[10] = gid.raw[11] = 0xff;
  gid.raw[12] = 127;
  gid.raw[15] = 1;
  return gid;
}

class RawDatagrams {
 public:
  struct Heard {
    std::vector<std::byte> bytes;
    int traffic_class = -1;  // the kernel did not tell
    sockaddr_storage from{};

    // One that says this?
    std::optional<wire::WdpCtl> ctl(wire::CtlType type) const {
      const auto c = wire::WdpCtl::parse(bytes);
      return c.ok() && c->type == type ? std::optional{*c} : std::nullopt;
    }
    std::optional<wire::WdpData> data(wire::Opcode opcode) const {
      const auto d = wire::WdpData::parse(bytes);
      return d.ok() && d->opcode == opcode ? std::optional{*d} : std::nullopt;
    }
  };

  // On a port of the system's choice, or on the first free one from `port` on: who has the lower
  // number calls (spec/addressing 4), and queue pairs have numbers of the ephemeral ports.
  static constexpr uint16_t kLow = 12'000;
  static constexpr uint16_t kHigh = 61'000;
  explicit RawDatagrams(const ibv_gid& gid, uint16_t port = 0) {
    SocketAddress at(gid, port);
    fd_ = ::socket(at.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0);
    const int on = 1;
    const bool tells = at.family() == AF_INET
                           ? ::setsockopt(fd_, IPPROTO_IP, IP_RECVTOS, &on, sizeof on) == 0
                           : ::setsockopt(fd_, IPPROTO_IPV6, IPV6_RECVTCLASS, &on, sizeof on) == 0;
    check(tells, "a UDP socket");
    while (::bind(fd_, at.get(), at.length) != 0) {
      check(errno == EADDRINUSE && port != 0 && port < 65'000, "bind");
      at = SocketAddress(gid, ++port);
    }
    check(::getsockname(fd_, at.get(), &at.length) == 0, "getsockname");
    port_ = ntohs(at.family() == AF_INET ? reinterpret_cast<sockaddr_in*>(at.get())->sin_port
                                         : reinterpret_cast<sockaddr_in6*>(at.get())->sin6_port);
  }
  ~RawDatagrams() { ::close(fd_); }
  RawDatagrams(const RawDatagrams&) = delete;
  RawDatagrams& operator=(const RawDatagrams&) = delete;

  uint16_t port() const { return port_; }

  // The next one; nothing when none comes within `ms`.
  std::optional<Heard> hear(int ms = 10'000) {
    pollfd p{fd_, POLLIN, 0};
    if (::poll(&p, 1, ms) != 1) return {};
    Heard h;
    h.bytes.resize(1 << 16);
    iovec piece{h.bytes.data(), h.bytes.size()};
    alignas(cmsghdr) std::array<std::byte, 128> control;
    msghdr m{};
    m.msg_name = &h.from;
    m.msg_namelen = sizeof h.from;
    m.msg_iov = &piece;
    m.msg_iovlen = 1;
    m.msg_control = control.data();
    m.msg_controllen = control.size();
    const ssize_t n = ::recvmsg(fd_, &m, 0);
    check(n >= 0, "recvmsg");
    h.bytes.resize(static_cast<size_t>(n));
    for (cmsghdr* c = CMSG_FIRSTHDR(&m); c != nullptr; c = CMSG_NXTHDR(&m, c)) {
      if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TOS) {
        h.traffic_class = *CMSG_DATA(c);
      } else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_TCLASS) {
        std::memcpy(&h.traffic_class, CMSG_DATA(c), sizeof h.traffic_class);
      }
    }
    return h;
  }
  // The next one that says this; others are passed over.
  Heard hear(wire::CtlType type) {
    return hear_one(to_string(type), [type](const Heard& h) { return h.ctl(type).has_value(); });
  }
  Heard hear(wire::Opcode opcode) {
    return hear_one("data", [opcode](const Heard& h) { return h.data(opcode).has_value(); });
  }
  void say(const wire::WdpCtl& c, const sockaddr_storage& to) {
    std::vector<std::byte> bytes(c.size());
    c.encode(bytes.data());
    say(bytes, to);
  }
  void say(Bytes bytes, const sockaddr_storage& to) {
    const socklen_t length = to.ss_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    check(::sendto(fd_, bytes.data(), bytes.size(), 0, reinterpret_cast<const sockaddr*>(&to),
                   length) == static_cast<ssize_t>(bytes.size()),
          "sendto");
  }

  // --- UC, as queue pair `index` of this port
  static constexpr SessionToken kToken{0x5eed};
  Qpn qpn(uint8_t index = 5) const { return make_qpn(port_, index); }
  wire::WdpCtl message(wire::CtlType type, Qpn peer) const {
    return {.type = type,
            .didx = index_of(peer),
            .sidx = index_of(qpn()),
            .source_token = kToken,
            .source = qpn(),
            .destination = peer,
            .xid = xid_,
            .service = wire::CtlService::uc,
            .ird = 16,
            .ord = 16,
            .max_payload = 1472,
            .first_psn = Psn{1000},
            .features = {.immediate = true, .uc_read = true, .ka_stats = true}};
  }
  // The listener on that port, or a queue pair there.
  void call(const ibv_gid& gid, uint16_t port, Qpn peer = {}) {
    const SocketAddress to(gid, port);
    wire::WdpCtl req = message(wire::CtlType::req, peer);
    req.ib_style = peer != Qpn{};
    say(req, to.storage);
  }
  // Hears the answer, to which it agrees.
  Heard answered() {
    Heard h = hear(wire::CtlType::rep);
    const auto rep = *h.ctl(wire::CtlType::rep);
    wire::WdpCtl rtu = message(wire::CtlType::rtu, rep.source);
    if (port_of(rep.source) != port_in(h.from)) rtu.didx = 0;
    rtu.token = rep.source_token;
    rtu.ib_style = rep.ib_style;
    say(rtu, h.from);
    return h;
  }
  // Says yes to the REQ that it hears next.
  Heard accept() {
    Heard h = hear(wire::CtlType::req);
    const auto req = *h.ctl(wire::CtlType::req);
    wire::WdpCtl rep = message(wire::CtlType::rep, req.source);
    rep.token = req.source_token;
    rep.xid = req.xid;
    rep.ib_style = req.ib_style;
    say(rep, h.from);
    return h;
  }

 private:
  template <class Is>
  Heard hear_one(const char* what, Is&& is) {
    for (int i = 0; i < 1000; ++i) {
      auto h = hear();
      check(h.has_value(), what);
      if (is(*h)) return std::move(*h);
    }
    throw std::runtime_error(what);
  }
  static uint16_t port_in(const sockaddr_storage& a) {
    return ntohs(a.ss_family == AF_INET ? reinterpret_cast<const sockaddr_in&>(a).sin_port
                                        : reinterpret_cast<const sockaddr_in6&>(a).sin6_port);
  }

  int fd_ = -1;
  uint16_t port_ = 0;
  // Of its own: a call with that of an earlier one, on the same port, would be a late copy.
  inline static uint32_t last_xid_ = 76;
  const Xid xid_{++last_xid_};
};

// What a RawDatagrams says in a session of UC that stands: data, which it numbers.
class RawUcSession {
 public:
  // `with`: the peer's REQ or REP.
  RawUcSession(RawDatagrams& own, const RawDatagrams::Heard& with) : own_(own), to_(with.from) {
    const auto said = wire::WdpCtl::parse(with.bytes);
    check(said.ok(), "a REQ or REP");
    peer_ = said->source;
    token_ = said->source_token;
  }

  void say(wire::WdpData d, Bytes payload = {}) {
    d.didx = index_of(peer_);
    d.sidx = index_of(own_.qpn());
    d.token = token_;
    d.psn = psn_;
    psn_ = next(psn_);
    std::vector<std::byte> bytes(wire::WdpData::kSize);
    d.encode(bytes.data());
    bytes.insert(bytes.end(), payload.begin(), payload.end());
    own_.say(bytes, to_);
  }

 private:
  RawDatagrams& own_;
  const sockaddr_storage to_;
  Qpn peer_;
  SessionToken token_;
  Psn psn_{1000};  // RawDatagrams::message()
};

}  // namespace weft::test
