// The baselines of datagrams: plain UDP sockets.
#include <poll.h>
#include <sys/socket.h>

#include <array>

#include "base/adapter_ports.h"
#include "bench/carrier.h"
#include "bench/region.h"
#include "kit/clock.h"
#include "kit/failure.h"
#include "kit/internet.h"

namespace weft::bench {
namespace {

constexpr int kBuffer = kDatagramBuffer;  // of each socket and direction

void set(const port::Fd& fd, int option, int value) {
  (void)::setsockopt(fd.get(), SOL_SOCKET, option, &value, sizeof value);
}

// A receive does not wait for longer than this.
void set_patience(const port::Fd& fd, int ms) {
  const timeval t{.tv_sec = 0, .tv_usec = ms * 1000};
  (void)::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t);
}

port::Fd connect_udp(const Order& order, const Channel& peer) {
  port::Fd fd = kit::new_socket(order.address, SOCK_DGRAM);
  set(fd, SO_RCVBUF, kBuffer);
  set(fd, SO_SNDBUF, kBuffer);
  peer.send({{"address", order.address}, {"port", kit::port_of(fd)}});
  const nlohmann::json where = peer.receive();
  const sockaddr_in to = kit::address_of(where.at("address"), where.at("port"));
  if (::connect(fd.get(), kit::generic(to), sizeof to) != 0) throw kit::system_failure("connect");
  // Nothing is sent before both are there.
  peer.send("ready");
  (void)peer.receive();
  return fd;
}

void send_datagram(const port::Fd& fd, std::array<iovec, 2> pieces) {
  msghdr header{};
  header.msg_iov = pieces.data();
  header.msg_iovlen = pieces.size();
  while (::sendmsg(fd.get(), &header, MSG_NOSIGNAL) < 0) {
    if (errno != EINTR && errno != ENOBUFS) throw kit::system_failure("sendmsg");
  }
}

// Bytes received; 0 when nothing came in time.
uint64_t receive_datagram(const port::Fd& fd, std::array<iovec, 2> places, int flags) {
  msghdr header{};
  header.msg_iov = places.data();
  header.msg_iovlen = places.size();
  const ssize_t n = ::recvmsg(fd.get(), &header, flags);
  if (n >= 0) return static_cast<uint64_t>(n);
  if (errno != EINTR && errno != EAGAIN) throw kit::system_failure("recvmsg");
  return 0;
}

// A message is a datagram.
class UdpCarrier final : public Carrier {
 public:
  explicit UdpCarrier(const Order& order)
      : order_(order), region_(order.spec.size - kUdpHeader), cursor_(region_) {
    if (order.role == Role::initiator) region_.fill_alike();
  }

  void connect(const Channel& peer) override {
    fd_ = connect_udp(order_, peer);
    set_patience(fd_, kPatienceMs);
  }
  void clear() override {
    received_ = {};
    if (order_.role == Role::target) region_.clear();
  }

  void start(bool ask) override {
    std::array<std::byte, kUdpHeader> header{std::byte{ask}};
    send_datagram(fd_, {iovec{header.data(), header.size()}, place()});
    cursor_.advance();
  }
  void finish() override {}
  unsigned answers(int most_ms) override {
    pollfd p{.fd = fd_.get(), .events = POLLIN, .revents = 0};
    unsigned n = 0;
    if (::poll(&p, 1, most_ms) <= 0) return n;
    std::array<std::byte, kUdpHeader> answer{};
    while (receive_datagram(fd_, {iovec{answer.data(), answer.size()}, {}}, MSG_DONTWAIT) > 0) ++n;
    return n;
  }

  void take(int) override {
    for (unsigned i = 0; i < kTakenAtOnce; ++i) {
      std::array<std::byte, kUdpHeader> header{};
      const uint64_t n = receive_datagram(fd_, {iovec{header.data(), header.size()}, place()}, 0);
      if (n == 0) return;
      received_.bytes += n;
      ++received_.messages;
      cursor_.advance();
      if (header[0] != std::byte{0}) {
        send_datagram(fd_, {iovec{header.data(), header.size()}, {}});
      }
    }
  }
  Received received() const override { return received_; }
  bool intact() const override { return region_.holds_nothing_else(); }

 private:
  static constexpr int kPatienceMs = 20;
  iovec place() { return {region_.data() + cursor_.offset(), region_.slot_size()}; }

  const Order order_;
  Region region_;
  Cursor cursor_;
  port::Fd fd_;
  Received received_;
};

class UdpPingPong final : public Work {
 public:
  explicit UdpPingPong(const Order& order)
      : order_(order),
        source_(order.spec.size),
        sink_(order.spec.size),
        sent_(source_),
        received_(sink_) {
    source_.fill();
  }

  void connect(const Channel& peer) override { fd_ = connect_udp(order_, peer); }
  void clear() override { sink_.clear(); }

  Done initiate(const Phase& phase) override {
    const auto there = [this](bool last) {
      send_message(last);
      (void)receive_message();
    };
    return ping_pong(phase, there, [] {});
  }
  void serve(const Phase&) override {
    for (bool last = false; !last;) {
      last = receive_message();
      send_message(last);
    }
  }
  bool intact(uint64_t first, uint64_t count) const override { return sink_.holds(first, count); }

 private:
  // The last one is a byte longer.
  void send_message(bool last) {
    std::byte more{};
    send_datagram(fd_, {iovec{source_.data() + sent_.offset(), order_.spec.size},
                        iovec{&more, last ? size_t{1} : 0}});
    sent_.advance();
  }
  // True when it was the last one.
  bool receive_message() {
    std::byte more{};
    const std::array<iovec, 2> places{iovec{sink_.data() + received_.offset(), order_.spec.size},
                                      iovec{&more, 1}};
    const int flags = order_.spec.wait == Wait::poll ? MSG_DONTWAIT : 0;
    for (;;) {
      const uint64_t n = receive_datagram(fd_, places, flags);
      if (n == 0) continue;
      received_.advance();
      return n > order_.spec.size;
    }
  }

  const Order order_;
  Region source_;
  Region sink_;
  Cursor sent_;
  Cursor received_;
  port::Fd fd_;
};

}  // namespace

std::unique_ptr<Carrier> make_udp_carrier(const Order& order) {
  return std::make_unique<UdpCarrier>(order);
}
std::unique_ptr<Work> make_udp_ping_pong(const Order& order) {
  return std::make_unique<UdpPingPong>(order);
}

}  // namespace weft::bench
