// Packets over TCP connections and in UDP datagrams.
#include <arpa/inet.h>
#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <utility>

#include "kit/failure.h"
#include "kit/internet.h"
#include "kit/json_numbers.h"
#include "port/faults.h"
#include "port/udp_socket.h"
#include "stream/counters.h"
#include "stream/multicast.h"
#include "stream/outlet.h"

namespace weft::stream {
namespace {

constexpr int kUdpBuffer = 4 << 20;
constexpr int kNoRoomMs = 10;
constexpr uint32_t kTrain = 65507;  // bytes of the largest datagram over IPv4

port::Fd connected(const OutletOptions& options, const std::string& address, uint16_t port,
                   int type) {
  port::Fd fd = bound_socket(options.own_address, 0, type);
  if (is_multicast(address)) leave_by(fd, options.interface, options.hops);
  const sockaddr_in to = kit::address_of(address, port);
  if (::connect(fd.get(), kit::generic(to), sizeof to) != 0) {
    throw kit::system_failure("connecting a stream");
  }
  return fd;
}

// Where the receiver takes the streams, or all of them.
const nlohmann::json& ends_in(const nlohmann::json& answer, size_t count) {
  const auto ends = answer.find("ends");
  if (ends == answer.end() || !ends->is_array() || ends->size() != count) {
    throw kit::Failure{"the receiver names ports of other streams"};
  }
  return *ends;
}

class UdpOutlet final : public Outlet {
 public:
  explicit UdpOutlet(const OutletOptions& options)
      : options_(options),
        staging_(options.streams, Staging::kSlots, options.shape.packet_bytes()) {}

  nlohmann::json ends() override {
    return std::vector<nlohmann::json>(options_.streams, nlohmann::json::object());
  }
  void connect(const nlohmann::json& answer) override {
    for (const auto& end : ends_in(answer, options_.streams)) {
      const std::string address = end.value("group", options_.address);
      const auto port = kit::number_at<uint16_t>(end, "port");
      port::Fd fd = connected(options_, address, port, SOCK_DGRAM);
      ::setsockopt(fd.get(), SOL_SOCKET, SO_SNDBUF, &kUdpBuffer, sizeof kUdpBuffer);
      if (faults_wanted()) {
        faulty_.emplace_back(std::move(fd), address, port);
      } else {
        sockets_.push_back(std::move(fd));
      }
    }
    if (faults_wanted()) count_own_faults();
  }
  uint32_t room(uint32_t, uint64_t, uint32_t most) override {
    return std::min(most, staging_.slots());
  }
  std::byte* slot(uint32_t stream, uint64_t number) override { return staging_.at(stream, number); }
  void send(uint32_t stream, uint64_t number, uint32_t packets, bool last) override;
  bool progress() override;

 private:
  // WEFT_FAULT acts on weft's own sockets: a stream has such a one instead.
  struct Faulty {
    Faulty(port::Fd fd, const std::string& address, uint16_t port)
        : socket(std::move(fd), kUdpBuffer),
          to(port::Address::from_gid(
              Gid::from_ipv4(ntohl(kit::address_of(address, port).sin_addr.s_addr)), port)) {}
    port::UdpSocket socket;
    port::Address to;
  };
  static bool faults_wanted() {
    const FaultSpec& spec = port::faults::of_process();
    return !spec.nothing_for_datagrams() && spec.applies_to(FaultDirection::out);
  }
  void send_with_faults(Faulty& stream, std::byte* packet);
  uint32_t send_some(uint32_t stream, std::span<iovec> packets);
  // How many packets the kernel takes as one, to cut them apart as late as it can.
  uint32_t train() const {
    return trains_ ? std::max(1U, kTrain / static_cast<uint32_t>(options_.shape.packet_bytes()))
                   : 1;
  }

  const OutletOptions options_;
  const Staging staging_;
  bool trains_ = true;  // until a device, route or kernel has none
  std::vector<port::Fd> sockets_;
  std::vector<Faulty> faulty_;
  port::Segmentation segmentation_;
};

bool UdpOutlet::progress() {
  bool all = true;
  for (Faulty& stream : faulty_) {
    stream.socket.release_held();
    all = all && stream.socket.held_until().is_never();
  }
  return all;
}

void UdpOutlet::send_with_faults(Faulty& stream, std::byte* packet) {
  const IoVec piece{packet, options_.shape.packet_bytes()};
  for (;;) {
    const auto sent = stream.socket.send(
        {.to = &stream.to, .fragments = true, .pieces = {&piece, 1}}, segmentation_);
    // Nobody listens now: as below.
    if (sent.bytes > 0 || sent.error == ECONNREFUSED) return;
    if (!sent.would_block) {
      errno = sent.too_big ? EMSGSIZE : sent.error;
      throw kit::system_failure("sending a datagram");
    }
    pollfd p{.fd = stream.socket.fd(), .events = POLLOUT, .revents = 0};
    (void)::poll(&p, 1, kNoRoomMs);
  }
}

void UdpOutlet::send(uint32_t stream, uint64_t number, uint32_t packets, bool) {
  if (!faulty_.empty()) {
    for (uint32_t i = 0; i < packets; ++i) {
      send_with_faults(faulty_[stream], staging_.at(stream, number + i));
    }
    return;
  }
  std::array<iovec, Staging::kSlots> pieces{};
  for (uint32_t i = 0; i < packets; ++i) {
    pieces[i] = {staging_.at(stream, number + i), options_.shape.packet_bytes()};
  }
  for (uint32_t at = 0; at < packets;) {
    at += send_some(stream, {&pieces[at], packets - at});
  }
}

// How many packets left.
uint32_t UdpOutlet::send_some(uint32_t stream, std::span<iovec> packets) {
  std::array<mmsghdr, Staging::kSlots> headers{};
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(uint16_t))> control{};
  auto* const segment = new (control.data()) cmsghdr{
      .cmsg_len = CMSG_LEN(sizeof(uint16_t)), .cmsg_level = SOL_UDP, .cmsg_type = UDP_SEGMENT};
  const auto size = static_cast<uint16_t>(options_.shape.packet_bytes());
  std::memcpy(CMSG_DATA(segment), &size, sizeof size);
  const uint32_t train = this->train();
  unsigned count = 0;
  for (size_t at = 0; at < packets.size(); at += train) {
    msghdr& m = headers[count++].msg_hdr;
    m.msg_iov = &packets[at];
    m.msg_iovlen = std::min<size_t>(train, packets.size() - at);
    if (m.msg_iovlen > 1) {
      m.msg_control = control.data();
      m.msg_controllen = control.size();
    }
  }
  const int sent = ::sendmmsg(sockets_[stream].get(), headers.data(), count, MSG_NOSIGNAL);
  if (sent > 0) {
    return std::min(static_cast<uint32_t>(packets.size()), train * static_cast<uint32_t>(sent));
  }
  // Nobody listens now: what a station sends then is lost as well.
  if (errno == ECONNREFUSED || errno == EINTR || errno == ENOBUFS || errno == EAGAIN) return 0;
  // The link's MTU is smaller than a packet, or its device cannot sum up the pieces of a train.
  if (!std::exchange(trains_, false)) throw kit::system_failure("sending a datagram");
  return 0;
}

class TcpOutlet final : public Outlet {
 public:
  explicit TcpOutlet(const OutletOptions& options)
      : options_(options),
        staging_(options.streams, Staging::kSlots, options.shape.packet_bytes()),
        connections_(options.streams) {}

  nlohmann::json ends() override {
    return std::vector<nlohmann::json>(options_.streams, nlohmann::json::object());
  }
  void connect(const nlohmann::json& answer) override;
  uint32_t room(uint32_t stream, uint64_t number, uint32_t most) override;
  std::byte* slot(uint32_t stream, uint64_t number) override {
    return staging_.at(stream, connections_[stream].end + number - connections_[stream].next);
  }
  void send(uint32_t stream, uint64_t number, uint32_t packets, bool last) override;
  bool progress() override;
  bool arrived() override;

 private:
  struct Connection {
    port::Fd fd;
    uint64_t next = 0;   // number of the next packet
    uint64_t begin = 0;  // turns: from here to `end` they have not left completely
    uint64_t end = 0;
    size_t gone = 0;  // bytes of the first of them
  };
  void push(uint32_t stream);

  const OutletOptions options_;
  const Staging staging_;
  std::vector<Connection> connections_;
};

void TcpOutlet::connect(const nlohmann::json& answer) {
  const auto port = kit::number_at<uint16_t>(ends_in(answer, 1).front(), "port");
  for (uint32_t i = 0; i < connections_.size(); ++i) {
    connections_[i].fd = connected(options_, options_.address, port, SOCK_STREAM);
    const int on = 1;
    ::setsockopt(connections_[i].fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    const uint32_t place = htonl(i);
    if (::send(connections_[i].fd.get(), &place, sizeof place, MSG_NOSIGNAL) != sizeof place) {
      throw kit::system_failure("connecting a stream");
    }
  }
}

uint32_t TcpOutlet::room(uint32_t stream, uint64_t number, uint32_t most) {
  Connection& connection = connections_[stream];
  connection.next = number;
  push(stream);
  return std::min(most,
                  staging_.slots() - static_cast<uint32_t>(connection.end - connection.begin));
}

void TcpOutlet::send(uint32_t stream, uint64_t, uint32_t packets, bool) {
  connections_[stream].end += packets;
  push(stream);
}

void TcpOutlet::push(uint32_t stream) {
  Connection& connection = connections_[stream];
  const size_t size = options_.shape.packet_bytes();
  while (connection.begin != connection.end) {
    std::array<iovec, Staging::kSlots> pieces{};
    size_t n = 0;
    for (uint64_t turn = connection.begin; turn != connection.end; ++turn) {
      pieces[n++] = {staging_.at(stream, turn), size};
    }
    pieces[0].iov_base = static_cast<std::byte*>(pieces[0].iov_base) + connection.gone;
    pieces[0].iov_len -= connection.gone;
    msghdr header{};
    header.msg_iov = pieces.data();
    header.msg_iovlen = n;
    const ssize_t sent = ::sendmsg(connection.fd.get(), &header, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN) return;
      throw kit::system_failure("a stream's connection broke");
    }
    connection.gone += static_cast<size_t>(sent);
    connection.begin += connection.gone / size;
    connection.gone %= size;
  }
}

bool TcpOutlet::progress() {
  bool all = true;
  for (uint32_t i = 0; i < connections_.size(); ++i) {
    push(i);
    all = all && connections_[i].begin == connections_[i].end;
  }
  return all;
}

// What TCP has to repeat may take it longer than a receiver waits for stragglers.
bool TcpOutlet::arrived() {
  return std::all_of(connections_.begin(), connections_.end(), [](const Connection& connection) {
    int unacknowledged = 0;
    if (::ioctl(connection.fd.get(), SIOCOUTQ, &unacknowledged) != 0) {
      throw kit::system_failure("a stream's connection");
    }
    return unacknowledged == 0;
  });
}

}  // namespace

Staging::Staging(uint32_t streams, uint32_t slots, uint32_t slot_bytes)
    : slots_(slots), slot_bytes_(slot_bytes), size_(uint64_t{streams} * slots * slot_bytes) {
  void* p = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) throw kit::system_failure("memory for packets");
  memory_ = static_cast<std::byte*>(p);
}

Staging::~Staging() {
  ::munmap(memory_, size_);
}

std::unique_ptr<Outlet> make_tcp_outlet(const OutletOptions& options) {
  return std::make_unique<TcpOutlet>(options);
}
std::unique_ptr<Outlet> make_udp_outlet(const OutletOptions& options) {
  return std::make_unique<UdpOutlet>(options);
}

}  // namespace weft::stream
