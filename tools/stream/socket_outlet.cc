// Packets over TCP connections and in UDP datagrams.
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>

#include "base/random.h"
#include "bench/failure.h"
#include "bench/internet.h"
#include "stream/outlet.h"

namespace weft::stream {
namespace {

constexpr int kUdpBuffer = 4 << 20;

port::Fd connected(const OutletOptions& options, uint16_t port, int type) {
  port::Fd fd = bound_socket(options.own_address, 0, type);
  const sockaddr_in to = bench::address_of(options.address, port);
  if (::connect(fd.get(), bench::generic(to), sizeof to) != 0) {
    throw bench::system_failure("connecting a stream");
  }
  return fd;
}

class UdpOutlet final : public Outlet {
 public:
  explicit UdpOutlet(const OutletOptions& options)
      : options_(options),
        staging_(options.streams, Staging::kSlots, options.shape.packet_bytes()),
        random_(options.drop_seed),
        threshold_(static_cast<uint64_t>(options.drop * 4294967296.0)) {}

  nlohmann::json ends() override {
    return std::vector<nlohmann::json>(options_.streams, nlohmann::json::object());
  }
  void connect(const nlohmann::json& answer) override {
    for (const auto& end : answer.at("ends")) {
      port::Fd fd = connected(options_, end.at("port"), SOCK_DGRAM);
      ::setsockopt(fd.get(), SOL_SOCKET, SO_SNDBUF, &kUdpBuffer, sizeof kUdpBuffer);
      sockets_.push_back(std::move(fd));
    }
  }
  uint32_t room(uint32_t, uint64_t, uint32_t most) override {
    return std::min(most, staging_.slots());
  }
  std::byte* slot(uint32_t stream, uint64_t number) override { return staging_.at(stream, number); }
  void send(uint32_t stream, uint64_t number, uint32_t packets, bool last) override;
  bool progress() override { return true; }
  uint64_t dropped() const override { return dropped_; }

 private:
  bool unlucky() { return threshold_ > 0 && random_.next() >> 32 < threshold_; }

  const OutletOptions options_;
  const Staging staging_;
  std::vector<port::Fd> sockets_;
  SeededRandom random_;
  const uint64_t threshold_;
  uint64_t dropped_ = 0;
};

void UdpOutlet::send(uint32_t stream, uint64_t number, uint32_t packets, bool) {
  std::array<mmsghdr, Staging::kSlots> headers{};
  std::array<iovec, Staging::kSlots> pieces{};
  unsigned n = 0;
  for (uint32_t i = 0; i < packets; ++i) {
    if (unlucky()) {
      ++dropped_;
      continue;
    }
    pieces[n] = {staging_.at(stream, number + i), options_.shape.packet_bytes()};
    headers[n].msg_hdr.msg_iov = &pieces[n];
    headers[n].msg_hdr.msg_iovlen = 1;
    ++n;
  }
  for (unsigned at = 0; at < n;) {
    const int sent = ::sendmmsg(sockets_[stream].get(), &headers[at], n - at, MSG_NOSIGNAL);
    if (sent > 0) {
      at += static_cast<unsigned>(sent);
      continue;
    }
    // Nobody listens now: what a station sends then is lost as well.
    if (errno == ECONNREFUSED) continue;
    if (errno != EINTR && errno != ENOBUFS && errno != EAGAIN) {
      throw bench::system_failure("sending a datagram");
    }
  }
}

class TcpOutlet final : public Outlet {
 public:
  explicit TcpOutlet(const OutletOptions& options)
      : options_(options),
        staging_(options.streams, Staging::kSlots, options.shape.packet_bytes()),
        ways_(options.streams) {}

  nlohmann::json ends() override {
    return std::vector<nlohmann::json>(options_.streams, nlohmann::json::object());
  }
  void connect(const nlohmann::json& answer) override;
  uint32_t room(uint32_t stream, uint64_t number, uint32_t most) override;
  std::byte* slot(uint32_t stream, uint64_t number) override {
    return staging_.at(stream, ways_[stream].end + number - ways_[stream].next);
  }
  void send(uint32_t stream, uint64_t number, uint32_t packets, bool last) override;
  bool progress() override;

 private:
  struct Way {
    port::Fd fd;
    uint64_t next = 0;   // number of the next packet
    uint64_t begin = 0;  // turns: from here to `end` they have not left completely
    uint64_t end = 0;
    size_t gone = 0;  // bytes of the first of them
  };
  void push(uint32_t stream);

  const OutletOptions options_;
  const Staging staging_;
  std::vector<Way> ways_;
};

void TcpOutlet::connect(const nlohmann::json& answer) {
  const uint16_t port = answer.at("ends").at(0).at("port");
  for (uint32_t i = 0; i < ways_.size(); ++i) {
    ways_[i].fd = connected(options_, port, SOCK_STREAM);
    const int on = 1;
    ::setsockopt(ways_[i].fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    const uint32_t place = htonl(i);
    if (::send(ways_[i].fd.get(), &place, sizeof place, MSG_NOSIGNAL) != sizeof place) {
      throw bench::system_failure("connecting a stream");
    }
  }
}

uint32_t TcpOutlet::room(uint32_t stream, uint64_t number, uint32_t most) {
  Way& way = ways_[stream];
  way.next = number;
  push(stream);
  return std::min(most, staging_.slots() - static_cast<uint32_t>(way.end - way.begin));
}

void TcpOutlet::send(uint32_t stream, uint64_t, uint32_t packets, bool) {
  ways_[stream].end += packets;
  push(stream);
}

void TcpOutlet::push(uint32_t stream) {
  Way& way = ways_[stream];
  const size_t size = options_.shape.packet_bytes();
  while (way.begin != way.end) {
    std::array<iovec, Staging::kSlots> pieces{};
    size_t n = 0;
    for (uint64_t turn = way.begin; turn != way.end; ++turn) {
      pieces[n++] = {staging_.at(stream, turn), size};
    }
    pieces[0].iov_base = static_cast<std::byte*>(pieces[0].iov_base) + way.gone;
    pieces[0].iov_len -= way.gone;
    msghdr header{};
    header.msg_iov = pieces.data();
    header.msg_iovlen = n;
    const ssize_t sent = ::sendmsg(way.fd.get(), &header, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN) return;
      throw bench::system_failure("a stream's connection broke");
    }
    way.gone += static_cast<size_t>(sent);
    way.begin += way.gone / size;
    way.gone %= size;
  }
}

bool TcpOutlet::progress() {
  bool all = true;
  for (uint32_t i = 0; i < ways_.size(); ++i) {
    push(i);
    all = all && ways_[i].begin == ways_[i].end;
  }
  return all;
}

}  // namespace

Staging::Staging(uint32_t streams, uint32_t slots, uint32_t slot_bytes)
    : slots_(slots), slot_bytes_(slot_bytes), size_(uint64_t{streams} * slots * slot_bytes) {
  void* p = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) throw bench::system_failure("memory for packets");
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
