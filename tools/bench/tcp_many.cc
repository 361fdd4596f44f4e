// The baseline of many connections: messages take plain TCP sockets by turns, a blocking send(2)
// each. The receiver asks epoll(7).
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>

#include "bench/crowd.h"
#include "bench/region.h"
#include "bench/tcp_socket.h"
#include "bench/work.h"
#include "kit/clock.h"
#include "kit/failure.h"

namespace weft::bench {
namespace {

class TcpMany final : public Work {
 public:
  explicit TcpMany(const Order& order) : order_(order), region_(order.spec.size), cursor_(region_) {
    if (order.role == Role::initiator) region_.fill();
  }

  void connect(const Channel& peer) override;
  void clear() override {
    if (order_.role == Role::target) region_.clear();
    settle(order_.spec);
  }
  Done initiate(const Phase& phase) override;
  void serve(const Phase& phase) override;
  bool intact(uint64_t first, uint64_t count) const override {
    return order_.role == Role::initiator || region_.holds(first, count);
  }
  std::string congestion() const override { return congestion_of(connections_[0].fd.get()); }

 private:
  struct Connection {
    port::Fd fd;
    uint64_t message = 0;  // that comes next, of all that both sides count
    uint64_t have = 0;     // bytes of it
  };
  static constexpr uint64_t kBetweenLooks = 16;
  static constexpr int kTurn = 16;  // messages from one socket before the others are asked

  Connection& busy(uint64_t message) { return connections_[busy_connection(order_.spec, message)]; }
  uint64_t take(Connection& connection);

  const Order order_;
  Region region_;
  Cursor cursor_;
  uint64_t sent_ = 0;
  std::vector<Connection> connections_;
  port::Fd epoll_;
  uint32_t open_ = 0;  // of the busy ones, whose end has not come
};

void TcpMany::connect(const Channel& peer) {
  epoll_ = port::Fd{::epoll_create1(EPOLL_CLOEXEC)};
  if (!epoll_.valid()) throw kit::system_failure("epoll_create1");
  connections_.resize(order_.spec.connections);
  for (size_t i = 0; i < connections_.size(); ++i) {
    connections_[i].fd = connect_tcp(order_, peer);
    epoll_event event{.events = EPOLLIN, .data = {.u64 = i}};
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, connections_[i].fd.get(), &event) != 0) {
      throw kit::system_failure("epoll_ctl");
    }
  }
  for (uint32_t i = 0; i < order_.spec.busy; ++i) busy(i).message = i;
  open_ = order_.spec.busy;
}

Done TcpMany::initiate(const Phase& phase) {
  const int64_t start = kit::now_ns();
  const int64_t end = start + phase.duration_ns;
  uint64_t messages = 0;
  while (phase.warm_up ? messages < phase.messages
                       : messages % kBetweenLooks != 0 || kit::now_ns() < end) {
    send_all(busy(sent_++).fd.get(), region_.data() + cursor_.offset(), order_.spec.size);
    cursor_.advance();
    ++messages;
  }
  if (!phase.warm_up) {
    for (uint32_t i = 0; i < order_.spec.busy; ++i) ::shutdown(busy(i).fd.get(), SHUT_WR);
    for (uint32_t i = 0; i < order_.spec.busy; ++i) {
      std::byte nothing{};
      (void)receive_some(busy(i).fd.get(), &nothing, 1, Wait::event);
    }
  }
  return {.messages = messages, .seconds = kit::seconds_between(start, kit::now_ns()), .extra = {}};
}

void TcpMany::serve(const Phase& phase) {
  uint64_t left = phase.warm_up ? phase.messages * order_.spec.size : UINT64_MAX;
  std::array<epoll_event, 64> events;
  while (left > 0 && open_ > 0) {
    const int n = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), -1);
    if (n < 0 && errno != EINTR) throw kit::system_failure("epoll_wait");
    for (int i = 0; i < n; ++i) left -= take(connections_[events[static_cast<size_t>(i)].data.u64]);
  }
  if (phase.warm_up) return;
  for (Connection& connection : connections_) connection.fd.reset();
}

// Bytes that were there, of some messages at most.
uint64_t TcpMany::take(Connection& connection) {
  uint64_t taken = 0;
  for (int turn = 0; turn < kTurn;) {
    std::byte* const slot =
        region_.data() + connection.message % region_.slots() * region_.slot_size();
    const uint64_t room = order_.spec.size - connection.have;
    const ssize_t n = ::recv(connection.fd.get(), slot + connection.have, room, MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) break;
    if (n < 0) throw kit::system_failure("recv");
    if (n == 0) {
      // Its end is told once.
      ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, connection.fd.get(), nullptr);
      --open_;
      break;
    }
    taken += static_cast<uint64_t>(n);
    connection.have += static_cast<uint64_t>(n);
    if (connection.have < order_.spec.size) break;  // what was there is taken
    connection.have = 0;
    connection.message += order_.spec.busy;
    ++turn;
  }
  return taken;
}

}  // namespace

std::unique_ptr<Work> make_tcp_many(const Order& order) {
  return std::make_unique<TcpMany>(order);
}

}  // namespace weft::bench
