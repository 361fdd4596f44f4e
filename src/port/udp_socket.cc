#include "port/udp_socket.h"

#include <netinet/ip.h>
#include <netinet/udp.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "port/calls.h"
#include "port/cut.h"
#include "port/faults.h"
#include "port/faulty_datagrams.h"
#include "port/udp_tap.h"

namespace weft::port {
namespace {

void set_int(int fd, int level, int name, int value) {
  // Where it fails the datagrams come without that word of the kernel's.
  (void)::setsockopt(fd, level, name, &value, sizeof value);
}

// As a dual-stack socket wants it.
Address mapped(const Address& to) {
  return Address::from_gid_as_ipv6(to.gid(), to.port(), to.scope());
}

// The kernel, the route or the device cannot cut trains. EINVAL also stands for a segment that is
// larger than the path allows, which shows when it goes alone.
bool no_segmentation(int error) {
  return error == EIO || error == EINVAL || error == EOPNOTSUPP || error == ENOPROTOOPT;
}

}  // namespace

struct UdpSocket::Control {
  alignas(cmsghdr) std::array<std::byte, 256> bytes;
};

struct UdpSocket::Hooks {
  std::unique_ptr<FaultyDatagrams> faults;
  std::unique_ptr<UdpTap> tap;
};

UdpSocket::UdpSocket() = default;
UdpSocket::UdpSocket(UdpSocket&&) noexcept = default;
UdpSocket& UdpSocket::operator=(UdpSocket&&) noexcept = default;
UdpSocket::~UdpSocket() = default;

UdpSocket::UdpSocket(Fd fd, size_t buffer) : fd_(std::move(fd)), family_(local().family()) {
  if (auto faults = FaultyDatagrams::of_process()) hooks().faults = std::move(faults);
  if (auto tap = UdpTap::of_process()) hooks().tap = std::move(tap);
  const auto size = static_cast<int>(std::min<size_t>(buffer, 1 << 30));
  // Beyond rmem_max and wmem_max where the process may.
  if (::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof size) != 0) {
    set_int(fd_.get(), SOL_SOCKET, SO_RCVBUF, size);
  }
  if (::setsockopt(fd_.get(), SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof size) != 0) {
    set_int(fd_.get(), SOL_SOCKET, SO_SNDBUF, size);
  }
  int granted = 0;
  socklen_t length = sizeof granted;
  if (::getsockopt(fd_.get(), SOL_SOCKET, SO_RCVBUF, &granted, &length) == 0) {
    receive_buffer_ = static_cast<size_t>(granted);
  }
  const int on = 1;
  gathers_ = ::setsockopt(fd_.get(), SOL_UDP, UDP_GRO, &on, sizeof on) == 0;
  set_int(fd_.get(), SOL_SOCKET, SO_RXQ_OVFL, 1);
  set_int(fd_.get(), IPPROTO_IP, IP_RECVTOS, 1);
  set_int(fd_.get(), IPPROTO_IP, IP_RECVTTL, 1);
  if (family_ == AF_INET6) {
    set_int(fd_.get(), IPPROTO_IPV6, IPV6_RECVPKTINFO, 1);
    set_int(fd_.get(), IPPROTO_IPV6, IPV6_RECVTCLASS, 1);
    set_int(fd_.get(), IPPROTO_IPV6, IPV6_RECVHOPLIMIT, 1);
  } else {
    set_int(fd_.get(), IPPROTO_IP, IP_PKTINFO, 1);
  }
  allow_fragments(false);
}

// There is no word for it in a datagram's control messages, over IPv4. Few sockets have both kinds.
void UdpSocket::allow_fragments(bool on) {
  if (std::exchange(fragments_, on) == on) return;
  // PROBE sets DF and leaves the size to us: wire.md 9.1 finds the path's MTU by its own probes.
  set_int(fd_.get(), IPPROTO_IP, IP_MTU_DISCOVER, on ? IP_PMTUDISC_DONT : IP_PMTUDISC_PROBE);
  if (family_ == AF_INET6) {
    set_int(fd_.get(), IPPROTO_IPV6, IPV6_MTU_DISCOVER,
            on ? IPV6_PMTUDISC_DONT : IPV6_PMTUDISC_PROBE);
  }
}

Address UdpSocket::local() const {
  Address a;
  a.length = sizeof a.storage;
  if (::getsockname(fd_.get(), a.get(), &a.length) != 0) a.length = 0;
  return a;
}

// --- faults and records

UdpSocket::Hooks& UdpSocket::hooks() {
  if (!hooks_) hooks_ = std::make_unique<Hooks>();
  return *hooks_;
}

void UdpSocket::inject(const FaultSpec& spec, FaultLog* log) {
  hooks().faults = spec.nothing_for_datagrams()
                       ? nullptr
                       : std::make_unique<FaultyDatagrams>(spec, faults::next_number(), log);
}

void UdpSocket::record(Capture& capture) {
  hooks().tap = std::make_unique<UdpTap>(capture);
}

// The faults stand for the network: what is sent is recorded before them, what comes behind them.
UdpSocket::Sent UdpSocket::send_hooked(const Train& train, Segmentation& segmentation) {
  const int64_t at = hooks_->tap ? UdpTap::now() : 0;
  const Sent sent = hooks_->faults ? hooks_->faults->send(*this, train, segmentation)
                                   : send_now(train, segmentation);
  if (hooks_->tap) hooks_->tap->sent(at, *this, train, sent);
  return sent;
}

UdpSocket::Received UdpSocket::receive_hooked(MutableBytes buffer) {
  const Received r = hooks_->faults ? hooks_->faults->receive(*this, buffer) : receive_now(buffer);
  if (hooks_->tap) hooks_->tap->received(UdpTap::now(), *this, r, buffer);
  return r;
}

Time UdpSocket::held_until() const {
  return hooks_ && hooks_->faults ? hooks_->faults->due() : Time::never();
}

void UdpSocket::release_held() {
  if (hooks_ && hooks_->faults) (void)hooks_->faults->flush(*this, faults::now());
}

// --- out

size_t UdpSocket::write_control(Control& control, const Train& train, size_t segment) const {
  msghdr m{};
  m.msg_control = control.bytes.data();
  m.msg_controllen = control.bytes.size();
  control.bytes.fill(std::byte{0});
  cmsghdr* c = CMSG_FIRSTHDR(&m);
  size_t used = 0;
  const auto put = [&](int level, int type, const auto& value) {
    c->cmsg_level = level;
    c->cmsg_type = type;
    c->cmsg_len = CMSG_LEN(sizeof value);
    std::memcpy(CMSG_DATA(c), &value, sizeof value);
    used += CMSG_SPACE(sizeof value);
    c = CMSG_NXTHDR(&m, c);
  };
  if (segment != 0) put(SOL_UDP, UDP_SEGMENT, static_cast<uint16_t>(segment));
  const bool ipv4 = family_ == AF_INET || train.to->gid().is_ipv4();
  if (!train.from.is_zero()) {
    if (family_ == AF_INET6) {
      in6_pktinfo info{};
      std::memcpy(&info.ipi6_addr, train.from.raw.data(), sizeof info.ipi6_addr);
      info.ipi6_ifindex = train.interface;
      put(IPPROTO_IPV6, IPV6_PKTINFO, info);
    } else {
      in_pktinfo info{};
      info.ipi_spec_dst.s_addr = htonl(train.from.ipv4());
      info.ipi_ifindex = static_cast<int>(train.interface);
      put(IPPROTO_IP, IP_PKTINFO, info);
    }
  }
  if (train.tos != 0) {
    const int tos = train.tos;
    if (ipv4) {
      put(IPPROTO_IP, IP_TOS, tos);
    } else {
      put(IPPROTO_IPV6, IPV6_TCLASS, tos);
    }
  }
  if (train.hop_limit != 0) {
    const int limit = train.hop_limit;
    if (ipv4) {
      put(IPPROTO_IP, IP_TTL, limit);
    } else {
      put(IPPROTO_IPV6, IPV6_HOPLIMIT, limit);
    }
  }
  return used;
}

UdpSocket::Sent UdpSocket::send_now(const Train& train, Segmentation& segmentation) {
  allow_fragments(train.fragments);
  Address to = family_ == AF_INET6 ? mapped(*train.to) : *train.to;
  msghdr header{};
  header.msg_name = to.get();
  header.msg_namelen = to.length;
  Control control;
  header.msg_control = control.bytes.data();
  header.msg_iov = const_cast<IoVec*>(train.pieces.data());
  header.msg_iovlen = train.pieces.size();
  const bool many = total(train.pieces) > train.segment && train.segment > 0;
  if (!many || segmentation.worth_trying()) {
    header.msg_controllen = write_control(control, train, many ? train.segment : 0);
    if (header.msg_controllen == 0) header.msg_control = nullptr;
    const Sent sent = send_train(train, header);
    if (!many) return sent;
    if (!no_segmentation(sent.error)) {
      if (sent.bytes > 0) segmentation.worked();
      return sent;
    }
  }
  header.msg_control = control.bytes.data();
  header.msg_controllen = write_control(control, train, 0);
  if (header.msg_controllen == 0) header.msg_control = nullptr;
  const Sent sent = send_one_by_one(train, header);
  if (sent.bytes > 0) segmentation.failed();
  return sent;
}

namespace {

UdpSocket::Sent outcome(int error) {
  if (error == EAGAIN || error == ENOBUFS) return {.would_block = true};
  if (error == EMSGSIZE) return {.too_big = true};
  return {.error = error};
}

}  // namespace

UdpSocket::Sent UdpSocket::send_train(const Train&, const msghdr& header) {
  for (;;) {
    const ssize_t n = calls::sendmsg(fd_.get(), &header, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n >= 0) return {.bytes = static_cast<size_t>(n)};
    if (errno != EINTR) return outcome(errno);
  }
}

UdpSocket::Sent UdpSocket::send_one_by_one(const Train& train, const msghdr& header) {
  const size_t all = total(train.pieces);
  std::array<mmsghdr, kMostSegments> messages{};
  std::array<size_t, kMostSegments + 1> first{};  // piece of each message in cut_
  Sent result;
  while (result.bytes < all) {
    cut_.clear();
    size_t count = 0;
    for (size_t at = result.bytes; at < all && count < kMostSegments; ++count) {
      const size_t n = std::min(train.segment, all - at);
      cut(train.pieces, at, n, cut_);
      first[count + 1] = cut_.size();
      at += n;
    }
    for (size_t i = 0; i < count; ++i) {
      messages[i].msg_hdr = header;
      messages[i].msg_hdr.msg_iov = cut_.data() + first[i];
      messages[i].msg_hdr.msg_iovlen = first[i + 1] - first[i];
    }
    const int n = calls::sendmmsg(fd_.get(), messages.data(), static_cast<unsigned>(count),
                                  MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0) {
      if (errno == EINTR) continue;
      const Sent end = outcome(errno);
      result.would_block = end.would_block;
      result.too_big = end.too_big;
      result.error = end.error;
      return result;
    }
    for (int i = 0; i < n; ++i) result.bytes += messages[static_cast<size_t>(i)].msg_len;
  }
  return result;
}

// --- in

UdpSocket::Received UdpSocket::receive_now(MutableBytes buffer) {
  const IoVec place{buffer.data(), buffer.size()};
  return receive_pieces({&place, 1}, 0);
}

UdpSocket::Received UdpSocket::look(MutableBytes front) {
  const IoVec place{front.data(), front.size()};
  return receive_pieces({&place, 1}, MSG_PEEK | MSG_TRUNC);
}

UdpSocket::Received UdpSocket::receive_pieces(std::span<const IoVec> pieces, int flags) {
  Received r;
  Control control;
  msghdr header{};
  header.msg_name = r.from.get();
  header.msg_namelen = sizeof r.from.storage;
  header.msg_iov = const_cast<IoVec*>(pieces.data());
  header.msg_iovlen = pieces.size();
  header.msg_control = control.bytes.data();
  header.msg_controllen = control.bytes.size();
  if (take(header, flags, r)) {
    r.from.length = header.msg_namelen;
    read_control(header, r);
  }
  return r;
}

// The kernel has told with look() who it is from and how it came; to tell again costs time.
UdpSocket::Received UdpSocket::receive_into(std::span<const IoVec> pieces) {
  Received r;
  msghdr header{};
  header.msg_iov = const_cast<IoVec*>(pieces.data());
  header.msg_iovlen = pieces.size();
  (void)take(header, 0, r);
  return r;
}

bool UdpSocket::take(msghdr& header, int flags, Received& r) {
  ssize_t n;
  do {
    n = calls::recvmsg(fd_.get(), &header, MSG_DONTWAIT | flags);
  } while (n < 0 && errno == EINTR);
  if (n < 0) {
    r.would_block = errno == EAGAIN;
    if (!r.would_block) r.error = errno;
    return false;
  }
  r.bytes = r.segment = static_cast<size_t>(n);
  r.truncated = (header.msg_flags & MSG_TRUNC) != 0;
  return true;
}

void UdpSocket::read_control(msghdr& header, Received& r) {
  for (cmsghdr* c = CMSG_FIRSTHDR(&header); c != nullptr; c = CMSG_NXTHDR(&header, c)) {
    const auto get = [&](auto& value) {
      std::memcpy(&value, CMSG_DATA(c), std::min(sizeof value, c->cmsg_len - CMSG_LEN(0)));
    };
    if (c->cmsg_level == SOL_UDP && c->cmsg_type == UDP_GRO) {
      int segment = 0;
      get(segment);
      if (segment > 0) r.segment = static_cast<size_t>(segment);
    } else if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SO_RXQ_OVFL) {
      get(overruns_);
    } else if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TOS) {
      get(r.tos);
    } else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_TCLASS) {
      int tclass = 0;
      get(tclass);
      r.tos = static_cast<uint8_t>(tclass);
    } else if ((c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TTL) ||
               (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_HOPLIMIT)) {
      int limit = 0;
      get(limit);
      r.hop_limit = static_cast<uint8_t>(limit);
    } else if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
      in_pktinfo info{};
      get(info);
      r.to = Gid::from_ipv4(ntohl(info.ipi_addr.s_addr));
      r.interface = static_cast<uint32_t>(info.ipi_ifindex);
    } else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
      in6_pktinfo info{};
      get(info);
      std::memcpy(r.to.raw.data(), &info.ipi6_addr, r.to.raw.size());
      r.interface = info.ipi6_ifindex;
    }
  }
}

}  // namespace weft::port
