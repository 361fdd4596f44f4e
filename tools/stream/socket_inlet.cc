// TCP connections and UDP sockets: packets are read beside the ring and copied to their places.
#include <linux/sock_diag.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "cli/stop.h"
#include "kit/clock.h"
#include "kit/failure.h"
#include "kit/internet.h"
#include "stream/intake.h"

namespace weft::stream {
namespace {

constexpr size_t kAtOnce = 64;            // datagrams of a call
constexpr size_t kPiece = 512 << 10;      // bytes that are read of a TCP connection
constexpr int kPatienceMs = 2;            // between two looks at consumers that hold up
constexpr int kConnectMs = 5'000;         // for all of a sender's connections
constexpr int kUdpBuffer = 64 << 20;      // asked for, of all sockets together
constexpr int kSmallestBuffer = 4 << 20;  // of each
constexpr uint32_t kWaker = ~uint32_t{0};

class SocketInlet : public Inlet {
 public:
  SocketInlet(const InletOptions& options, Lanes& lanes)
      : options_(options), lanes_(lanes), epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
    const bool reliable = options.transport == Transport::tcp;
    for (uint32_t i = 0; i < lanes.size(); ++i) {
      intakes_.emplace_back(options, i, lanes[i], reliable);
    }
    if (!epoll_.valid()) throw kit::system_failure("epoll_create1");
    if (options.waker >= 0) watch(options.waker, kWaker);
  }
  void wait(int most_ms) override {
    if (held_up_) most_ms = std::min(most_ms, kPatienceMs);
    const int n =
        ::epoll_wait(epoll_.get(), ready_.data(), static_cast<int>(ready_.size()), most_ms);
    found_ = static_cast<size_t>(std::max(n, 0));
  }
  bool take(int64_t now_ns) override {
    bool any = false;
    const size_t found = std::exchange(found_, 0);
    for (size_t i = 0; i < found; ++i) {
      const uint32_t stream = ready_[i].data.u32;
      if (stream != kWaker) any = take_from(stream, now_ns) || any;
    }
    return any;
  }
  void begin(const ConnectedSender& sender) override {
    for (const uint32_t stream : sender.streams) intakes_[stream].begin(sender.shape);
  }
  void settle(uint32_t stream, int64_t now_ns) override {
    intakes_[stream].settle(now_ns);
    lanes_[stream].ledger.settle();
  }

 protected:
  void watch(int fd, uint32_t stream) {
    epoll_event event{.events = EPOLLIN, .data = {.u32 = stream}};
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
      throw kit::system_failure("epoll_ctl");
    }
  }
  void ignore(int fd) { ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr); }
  // Takes what has come for a stream.
  virtual bool take_from(uint32_t stream, int64_t now_ns) = 0;

  const InletOptions options_;
  Lanes& lanes_;
  std::deque<Intake> intakes_;  // of the lanes
  bool held_up_ = false;

 private:
  port::Fd epoll_;
  std::array<epoll_event, 64> ready_{};
  size_t found_ = 0;
};

class UdpInlet final : public SocketInlet {
 public:
  UdpInlet(const InletOptions& options, Lanes& lanes);
  nlohmann::json offer(ConnectedSender& sender) override;
  void connect(ConnectedSender&) override {}
  void end(const ConnectedSender&) override {}
  uint64_t dropped_by_kernel() override;

 private:
  bool take_from(uint32_t socket, int64_t now_ns) override;
  void take_of_any(ConstPacket packet, int64_t now_ns);
  // Each stream has a group of its own.
  bool group_each() const { return !options_.shape.names_streams() && options_.groups.size() > 1; }
  port::Fd socket_of(uint32_t i) const;

  std::vector<port::Fd>
      sockets_;        // a stream each, or one of all whose packets say which they are of
  const size_t room_;  // for a datagram, and a byte more to see that one is too long
  std::vector<std::byte> scratch_;
  std::array<mmsghdr, kAtOnce> headers_{};
  std::array<iovec, kAtOnce> places_{};
};

UdpInlet::UdpInlet(const InletOptions& options, Lanes& lanes)
    : SocketInlet(options, lanes),
      room_((options.shape.packet_bytes() + 1 + 63) / 64 * 64),
      scratch_(kAtOnce * room_) {
  for (size_t i = 0; i < kAtOnce; ++i) {
    places_[i] = {scratch_.data() + i * room_, options.shape.packet_bytes() + 1};
    headers_[i].msg_hdr.msg_iov = &places_[i];
    headers_[i].msg_hdr.msg_iovlen = 1;
  }
  const size_t sockets = options.shape.names_streams() ? 1 : lanes.size();
  const int buffer = std::max(kUdpBuffer / static_cast<int>(sockets), kSmallestBuffer);
  for (uint32_t i = 0; i < sockets; ++i) {
    port::Fd fd = socket_of(i);
    // Beyond the system's limit where this process may (CAP_NET_ADMIN).
    if (::setsockopt(fd.get(), SOL_SOCKET, SO_RCVBUFFORCE, &buffer, sizeof buffer) != 0) {
      ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVBUF, &buffer, sizeof buffer);
    }
    watch(fd.get(), i);
    sockets_.push_back(std::move(fd));
  }
}

port::Fd UdpInlet::socket_of(uint32_t i) const {
  constexpr int kType = SOCK_DGRAM | SOCK_NONBLOCK;
  // Groups that have a port in common are told apart by the address.
  if (group_each()) {
    const Group& group = options_.groups[i];
    port::Fd fd = bound_socket(group.address, options_.udp_port, kType);
    join(fd, group, options_.address);
    return fd;
  }
  const int port = options_.udp_port == 0 ? 0 : options_.udp_port + static_cast<int>(i);
  if (options_.groups.empty()) {
    return bound_socket(options_.address, static_cast<uint16_t>(port), kType);
  }
  // One that is bound to the interface's address hears no group.
  port::Fd fd = bound_socket("", static_cast<uint16_t>(port), kType);
  for (const Group& group : options_.groups) join(fd, group, options_.address);
  return fd;
}

nlohmann::json UdpInlet::offer(ConnectedSender& sender) {
  auto answer = nlohmann::json::array();
  for (const uint32_t stream : sender.streams) {
    nlohmann::json end = {{"port", own_port(sockets_[stream % sockets_.size()])}};
    if (!options_.groups.empty()) {
      end["group"] = options_.groups[group_each() ? stream : 0].address;
    }
    answer.push_back(std::move(end));
  }
  return answer;
}

uint64_t UdpInlet::dropped_by_kernel() {
  uint64_t sum = 0;
  for (const port::Fd& fd : sockets_) {
    std::array<uint32_t, SK_MEMINFO_VARS> memory{};
    socklen_t length = sizeof memory;
    if (::getsockopt(fd.get(), SOL_SOCKET, SO_MEMINFO, memory.data(), &length) != 0) continue;
    sum += memory[SK_MEMINFO_DROPS];
  }
  return sum;
}

// Of a socket whose packets say which stream they are of.
void UdpInlet::take_of_any(ConstPacket packet, int64_t now_ns) {
  const Header header = read_header(options_.shape, packet);
  const uint64_t stream = header.stream.value_or(0);
  if (stream >= lanes_.size()) {
    intakes_[0].refuse_foreign(header);
    return;
  }
  (void)intakes_[stream].take(header, packet, now_ns);
  lanes_[stream].ledger.settle();
}

bool UdpInlet::take_from(uint32_t socket, int64_t now_ns) {
  const bool of_any = options_.shape.names_streams();
  const int n = ::recvmmsg(sockets_[socket].get(), headers_.data(), kAtOnce, MSG_DONTWAIT, nullptr);
  for (int i = 0; i < n; ++i) {
    const mmsghdr& m = headers_[static_cast<size_t>(i)];
    const ConstPacket packet{scratch_.data() + static_cast<size_t>(i) * room_, m.msg_len};
    if (of_any) {
      take_of_any(packet, now_ns);
    } else {
      (void)intakes_[socket].take(packet, now_ns);
    }
  }
  if (!of_any) lanes_[socket].ledger.settle();
  return n > 0;
}

// Until `fd` is readable. A receiver that is to end does not wait for a sender that does not come.
void await(int fd, int64_t until) {
  constexpr int kLookMs = 50;
  pollfd p{.fd = fd, .events = POLLIN, .revents = 0};
  while (::poll(&p, 1, kLookMs) <= 0) {
    if (cli::stop_asked() || kit::now_ns() > until) {
      throw kit::Failure{"the sender does not connect"};
    }
  }
}

struct TcpEnds final : Ends {
  port::Fd listener;
  std::vector<port::Fd> connections;
};

class TcpInlet final : public SocketInlet {
 public:
  TcpInlet(const InletOptions& options, Lanes& lanes)
      : SocketInlet(options, lanes), feeds_(lanes.size()) {}
  nlohmann::json offer(ConnectedSender& sender) override;
  void connect(ConnectedSender& sender) override;
  void begin(const ConnectedSender& sender) override;
  void end(const ConnectedSender& sender) override;
  bool take(int64_t now_ns) override;

 private:
  struct Feed {
    int fd = -1;
    std::vector<std::byte> bytes;
    size_t begin = 0;  // of what is not taken yet
    size_t end = 0;
  };
  bool take_from(uint32_t stream, int64_t now_ns) override;
  bool unpack(uint32_t stream, int64_t now_ns);

  std::vector<Feed> feeds_;
};

nlohmann::json TcpInlet::offer(ConnectedSender& sender) {
  auto ends = std::make_shared<TcpEnds>();
  ends->listener = listener(sender.own_address, 0);
  ends->connections.resize(sender.streams.size());
  sender.kept = ends;
  return nlohmann::json::array({{{"port", own_port(ends->listener)}}});
}

// Each connection begins with its place among the sender's streams, four bytes big-endian.
void TcpInlet::connect(ConnectedSender& sender) {
  auto& ends = static_cast<TcpEnds&>(*sender.kept);
  const int64_t until = kit::now_ns() + int64_t{kConnectMs} * 1'000'000;
  const in_addr_t wanted = kit::address_of(sender.address, 0).sin_addr.s_addr;
  for (size_t taken = 0; taken < ends.connections.size();) {
    await(ends.listener.get(), until);
    sockaddr_in from{};
    socklen_t length = sizeof from;
    port::Fd fd{
        ::accept4(ends.listener.get(), reinterpret_cast<sockaddr*>(&from), &length, SOCK_CLOEXEC)};
    if (!fd.valid()) throw kit::system_failure("a sender's connection, accept4");
    // Anybody may find the port.
    if (from.sin_addr.s_addr != wanted) continue;
    await(fd.get(), until);
    // What is four bytes comes at once.
    const timeval patience{.tv_sec = 0, .tv_usec = 100'000};
    ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    uint32_t place = 0;
    if (::recv(fd.get(), &place, sizeof place, MSG_WAITALL) != sizeof place ||
        ntohl(place) >= ends.connections.size() || ends.connections[ntohl(place)].valid()) {
      throw kit::Failure{"a connection that belongs to no stream"};
    }
    ends.connections[ntohl(place)] = std::move(fd);
    ++taken;
  }
}

void TcpInlet::begin(const ConnectedSender& sender) {
  SocketInlet::begin(sender);
  const auto& ends = static_cast<const TcpEnds&>(*sender.kept);
  for (size_t i = 0; i < sender.streams.size(); ++i) {
    Feed& feed = feeds_[sender.streams[i]];
    feed.fd = ends.connections[i].get();
    feed.bytes.resize(kPiece + options_.shape.packet_bytes());
    feed.begin = feed.end = 0;
    watch(feed.fd, sender.streams[i]);
  }
}

void TcpInlet::end(const ConnectedSender& sender) {
  for (const uint32_t stream : sender.streams) {
    if (feeds_[stream].fd >= 0) ignore(std::exchange(feeds_[stream].fd, -1));
    lanes_[stream].blocked = false;
  }
}

// Brings whole packets to their places, as far as there is room. True when there is room.
bool TcpInlet::unpack(uint32_t stream, int64_t now_ns) {
  Feed& feed = feeds_[stream];
  Lane& lane = lanes_[stream];
  const size_t size = options_.shape.packet_bytes();
  lane.blocked = false;
  for (; feed.end - feed.begin >= size; feed.begin += size) {
    const ConstPacket packet{feed.bytes.data() + feed.begin, size};
    if (!intakes_[stream].take(packet, now_ns)) {
      lane.blocked = true;
      break;
    }
    lane.ledger.settle();
  }
  return !lane.blocked;
}

bool TcpInlet::take_from(uint32_t stream, int64_t now_ns) {
  Feed& feed = feeds_[stream];
  if (feed.fd < 0 || lanes_[stream].blocked) return false;
  if (feed.begin > 0) {
    std::memmove(feed.bytes.data(), feed.bytes.data() + feed.begin, feed.end - feed.begin);
    feed.end -= std::exchange(feed.begin, 0);
  }
  const ssize_t n =
      ::recv(feed.fd, feed.bytes.data() + feed.end, feed.bytes.size() - feed.end, MSG_DONTWAIT);
  if (n == 0) ignore(std::exchange(feed.fd, -1));
  if (n <= 0) return false;
  feed.end += static_cast<size_t>(n);
  // TCP holds the sender up; this connection alone is left unread.
  if (!unpack(stream, now_ns)) ignore(feed.fd);
  return true;
}

bool TcpInlet::take(int64_t now_ns) {
  bool any = SocketInlet::take(now_ns);
  held_up_ = false;
  for (uint32_t i = 0; i < feeds_.size(); ++i) {
    if (!lanes_[i].blocked) continue;
    if (unpack(i, now_ns)) {
      if (feeds_[i].fd >= 0) watch(feeds_[i].fd, i);
      any = true;
    } else {
      held_up_ = true;
    }
  }
  return any;
}

}  // namespace

std::unique_ptr<Inlet> make_socket_inlet(const InletOptions& options, Lanes& lanes) {
  if (options.transport == Transport::tcp) return std::make_unique<TcpInlet>(options, lanes);
  return std::make_unique<UdpInlet>(options, lanes);
}

}  // namespace weft::stream
