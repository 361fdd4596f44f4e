#include "port/udp_socket.h"

#include <linux/sock_diag.h>
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
#include "port/socket_option.h"
#include "port/udp_tap.h"

namespace weft::port {
namespace {

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
    set_option(fd_.get(), SOL_SOCKET, SO_RCVBUF, size);
  }
  if (::setsockopt(fd_.get(), SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof size) != 0) {
    set_option(fd_.get(), SOL_SOCKET, SO_SNDBUF, size);
  }
  int granted = 0;
  socklen_t length = sizeof granted;
  if (::getsockopt(fd_.get(), SOL_SOCKET, SO_RCVBUF, &granted, &length) == 0) {
    receive_buffer_ = static_cast<size_t>(granted);
  }
  const int on = 1;
  gathers_ = ::setsockopt(fd_.get(), SOL_UDP, UDP_GRO, &on, sizeof on) == 0;
  set_option(fd_.get(), IPPROTO_IP, IP_RECVTOS, 1);
  set_option(fd_.get(), IPPROTO_IP, IP_RECVTTL, 1);
  if (family_ == AF_INET6) {
    set_option(fd_.get(), IPPROTO_IPV6, IPV6_RECVPKTINFO, 1);
    set_option(fd_.get(), IPPROTO_IPV6, IPV6_RECVTCLASS, 1);
    set_option(fd_.get(), IPPROTO_IPV6, IPV6_RECVHOPLIMIT, 1);
  } else {
    set_option(fd_.get(), IPPROTO_IP, IP_PKTINFO, 1);
  }
  allow_fragments(false);
}

void UdpSocket::switch_gro() {
  if (!gathers_) return;
  set_option(fd_.get(), SOL_UDP, UDP_GRO, gro_.wanted() ? 1 : 0);
  ++gro_switches_;
}

// A train that came since the socket was empty would be told of without its segment size, so it is
// looked for. One that another processor began to queue before and ends to behind the look, some
// 100 ns, is not seen: it does not have the length that its first header says, and is dropped.
void UdpSocket::switch_gro_off() {
  switch_gro();
  std::byte first;
  if (calls::recv(fd_.get(), &first, sizeof first, MSG_PEEK | MSG_DONTWAIT) < 0) return;
  gro_.not_empty();
  switch_gro();
}

// There is no word for it in a datagram's control messages, over IPv4. Few sockets have both kinds.
void UdpSocket::allow_fragments(bool on) {
  if (std::exchange(fragments_, on) == on) return;
  // PROBE sets DF and leaves the size to us: spec/wdp 5.4 finds the path's MTU by its own probes.
  set_option(fd_.get(), IPPROTO_IP, IP_MTU_DISCOVER, on ? IP_PMTUDISC_DONT : IP_PMTUDISC_PROBE);
  if (family_ == AF_INET6) {
    set_option(fd_.get(), IPPROTO_IPV6, IPV6_MTU_DISCOVER,
               on ? IPV6_PMTUDISC_DONT : IPV6_PMTUDISC_PROBE);
  }
}

uint32_t UdpSocket::overruns() const {
  std::array<uint32_t, SK_MEMINFO_VARS> facts{};
  socklen_t length = sizeof facts;
  // A kernel that does not tell leaves the zeros (before Linux 4.12).
  (void)::getsockopt(fd_.get(), SOL_SOCKET, SO_MEMINFO, facts.data(), &length);
  return facts[SK_MEMINFO_DROPS];
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

UdpSocket::Sent UdpSocket::send_now(const Train& train, Segmentation& segmentation) {
  allow_fragments(train.fragments);
  Address converted;
  const Address* to = train.to;
  if (family_ == AF_INET6 && to->family() != AF_INET6) {
    converted = mapped(*to);
    to = &converted;
  }
  msghdr header{};
  header.msg_name = const_cast<sockaddr*>(to->get());
  header.msg_namelen = to->length;
  Control control;
  header.msg_control = control.bytes.data();
  header.msg_iov = const_cast<IoVec*>(train.pieces.data());
  header.msg_iovlen = train.pieces.size();
  const bool many = total(train.pieces) > train.segment && train.segment > 0;
  bool too_big_as_one = false;
  if (!many || segmentation.worth_trying()) {
    header.msg_controllen = write_control(control.bytes, train, many ? train.segment : 0);
    if (header.msg_controllen == 0) header.msg_control = nullptr;
    const Sent sent = send_train(train, header);
    if (!many) return sent;
    // Linux 6.18 refuses trains of datagrams that IP would cut up, and takes each by itself. What
    // is too big alone is told of below.
    too_big_as_one = sent.too_big;
    if (!too_big_as_one && !no_segmentation(sent.error)) {
      if (sent.bytes > 0) segmentation.worked();
      return sent;
    }
  }
  header.msg_control = control.bytes.data();
  header.msg_controllen = write_control(control.bytes, train, 0);
  if (header.msg_controllen == 0) header.msg_control = nullptr;
  const Sent sent = send_one_by_one(train, header);
  // It is no fault of the route: datagrams of another size go in trains.
  if (sent.bytes > 0 && !too_big_as_one) segmentation.failed();
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

std::optional<UdpSocket::Received> UdpSocket::look(MutableBytes front) {
  if (hooks_) return {};
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
    if ((flags & MSG_PEEK) == 0 && gro_.came(r.segment < r.bytes)) switch_gro();
  }
  return r;
}

// The kernel has told with look() who it is from and how it came; to tell again costs time.
UdpSocket::Received UdpSocket::receive_into(std::span<const IoVec> pieces) {
  Received r;
  msghdr header{};
  header.msg_iov = const_cast<IoVec*>(pieces.data());
  header.msg_iovlen = pieces.size();
  if (take(header, 0, r) && gro_.came(false)) switch_gro();
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
    if (r.would_block && gro_.empty()) switch_gro_off();
    return false;
  }
  r.bytes = r.segment = static_cast<size_t>(n);
  r.truncated = (header.msg_flags & MSG_TRUNC) != 0;
  return true;
}

}  // namespace weft::port
