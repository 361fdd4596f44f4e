// The baselines: plain TCP sockets that move the same messages between the same kind of memory.
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>

#include "bench/clock.h"
#include "bench/failure.h"
#include "bench/internet.h"
#include "bench/region.h"
#include "bench/work.h"
#include "config/options.h"

namespace weft::bench {
namespace {

std::string congestion_of(int fd) {
  std::array<char, 16> name{};
  socklen_t length = name.size();
  if (::getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name.data(), &length) != 0) return {};
  return name.data();
}

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

port::Fd connect_tcp(const Order& order, const Channel& peer) {
  port::Fd fd;
  if (order.role == Role::target) {
    const port::Fd listener = new_socket(order.address, SOCK_STREAM);
    if (::listen(listener.get(), 1) != 0) throw system_failure("listen");
    peer.send({{"address", order.address}, {"port", port_of(listener)}});
    fd = port::Fd{::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC)};
    if (!fd.valid()) throw system_failure("accept");
  } else {
    const nlohmann::json where = peer.receive();
    const sockaddr_in to = address_of(where.at("address"), where.at("port"));
    fd = new_socket(order.address, SOCK_STREAM);
    if (::connect(fd.get(), generic(to), sizeof to) != 0) {
      throw system_failure("connect to " + where.at("address").get<std::string>());
    }
  }
  const int on = 1;
  (void)::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  choose_congestion(fd.get());
  return fd;
}

void send_all(int fd, const std::byte* p, uint64_t n) {
  while (n > 0) {
    const ssize_t sent = ::send(fd, p, n, MSG_NOSIGNAL);
    if (sent < 0) {
      if (errno == EINTR) continue;
      throw system_failure("send");
    }
    p += sent;
    n -= static_cast<uint64_t>(sent);
  }
}

// Bytes read; 0 at the end of the stream.
uint64_t receive_some(int fd, std::byte* p, uint64_t n, Wait wait) {
  const int flags = wait == Wait::poll ? MSG_DONTWAIT : 0;
  for (;;) {
    const ssize_t received = ::recv(fd, p, n, flags);
    if (received >= 0) return static_cast<uint64_t>(received);
    if (errno != EINTR && errno != EAGAIN) throw system_failure("recv");
  }
}

// `size` bytes a send, as fast as they go.
class TcpStream final : public Work {
 public:
  explicit TcpStream(const Order& order)
      : order_(order), region_(order.spec.size), cursor_(region_) {
    if (order.role == Role::initiator) region_.fill();
  }

  void connect(const Channel& peer) override {
    fd_ = connect_tcp(order_, peer);
    congestion_ = congestion_of(fd_.get());
  }
  void clear() override {
    if (order_.role == Role::target) region_.clear();
  }

  Done initiate(const Phase& phase) override {
    const int64_t start = now_ns();
    const int64_t end = start + phase.duration_ns;
    uint64_t messages = 0;
    int64_t now = start;
    while (phase.warm_up ? messages < phase.messages : now < end) {
      // Small messages: not one look at the clock for each.
      for (uint64_t i = 0; i < kBetweenLooks; ++i) {
        send_all(fd_.get(), region_.data() + cursor_.offset(), order_.spec.size);
        cursor_.advance();
        ++messages;
        if (phase.warm_up && messages == phase.messages) break;
      }
      now = now_ns();
    }
    if (!phase.warm_up) {
      // As with a completion, the time ends when all is at the peer.
      ::shutdown(fd_.get(), SHUT_WR);
      std::byte nothing{};
      (void)receive_some(fd_.get(), &nothing, 1, Wait::event);
    }
    return {.messages = messages, .seconds = seconds_between(start, now_ns()), .extra = {}};
  }

  void serve(const Phase& phase) override {
    uint64_t left = phase.warm_up ? phase.messages * order_.spec.size : UINT64_MAX;
    while (left > 0) {
      const uint64_t room = std::min({left, order_.spec.size, region_.size() - at_});
      const uint64_t n = receive_some(fd_.get(), region_.data() + at_, room, Wait::event);
      if (n == 0) break;
      left -= n;
      at_ += n;
      if (at_ == region_.size()) at_ = 0;
    }
    if (!phase.warm_up) fd_.reset();
  }

  bool intact(uint64_t first, uint64_t count) const override {
    return order_.role == Role::initiator || region_.holds(first, count);
  }
  std::string congestion() const override { return congestion_; }

 private:
  static constexpr uint64_t kBetweenLooks = 16;
  const Order order_;
  Region region_;
  Cursor cursor_;
  uint64_t at_ = 0;  // the receiver's place; TCP keeps no message together
  port::Fd fd_;
  std::string congestion_;
};

class TcpPingPong final : public Work {
 public:
  explicit TcpPingPong(const Order& order)
      : order_(order),
        source_(order.spec.size),
        sink_(order.spec.size),
        sent_(source_),
        received_(sink_) {
    source_.fill();
  }

  void connect(const Channel& peer) override {
    fd_ = connect_tcp(order_, peer);
    congestion_ = congestion_of(fd_.get());
  }
  void clear() override { sink_.clear(); }

  Done initiate(const Phase& phase) override {
    RoundTrips trips;
    const int64_t start = now_ns();
    const int64_t end = start + phase.duration_ns;
    trips.start(start);
    uint64_t messages = 0;
    int64_t now = start;
    while (phase.warm_up ? messages < phase.messages : now < end) {
      send_message();
      if (!receive_message()) throw Failure{"the peer closed the connection"};
      ++messages;
      now = now_ns();
      trips.add(now);
    }
    if (!phase.warm_up) ::shutdown(fd_.get(), SHUT_WR);
    return {.messages = messages, .seconds = seconds_between(start, now), .extra = trips.figures()};
  }

  void serve(const Phase& phase) override {
    for (uint64_t n = 0; !phase.warm_up || n < phase.messages; ++n) {
      if (!receive_message()) return;
      send_message();
    }
  }

  bool intact(uint64_t first, uint64_t count) const override { return sink_.holds(first, count); }
  std::string congestion() const override { return congestion_; }

 private:
  void send_message() {
    send_all(fd_.get(), source_.data() + sent_.offset(), order_.spec.size);
    sent_.advance();
  }
  // False at the end of the stream.
  bool receive_message() {
    std::byte* const place = sink_.data() + received_.offset();
    for (uint64_t have = 0; have < order_.spec.size;) {
      const uint64_t n =
          receive_some(fd_.get(), place + have, order_.spec.size - have, order_.spec.wait);
      if (n == 0) return false;
      have += n;
    }
    received_.advance();
    return true;
  }

  const Order order_;
  Region source_;
  Region sink_;
  Cursor sent_;
  Cursor received_;
  port::Fd fd_;
  std::string congestion_;
};

}  // namespace

std::unique_ptr<Work> make_tcp_stream(const Order& order) {
  return std::make_unique<TcpStream>(order);
}
std::unique_ptr<Work> make_tcp_ping_pong(const Order& order) {
  return std::make_unique<TcpPingPong>(order);
}

}  // namespace weft::bench
