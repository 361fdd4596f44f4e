// Two sides of rsocket(7) in one process, and a peer of the test's own making.
#pragma once

#include <rdma/rsocket.h>

#include <future>
#include <vector>

#include "tests/abi/cm_fixture.h"

namespace weft::test::rsockets {

class Socket {
 public:
  explicit Socket(int fd) : fd_(fd) {}
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  ~Socket() { close(); }
  int fd() const { return fd_; }
  void close() {
    if (fd_ >= 0) {
      EXPECT_OK(rclose(std::exchange(fd_, -1)));
    }
  }

 private:
  int fd_;
};

inline Socket open_socket() {
  Socket s{rsocket(AF_INET, SOCK_STREAM, 0)};
  EXPECT_GE(s.fd(), 0) << strerror(errno);
  return s;
}

inline sockaddr_in name_of(int fd) {
  sockaddr_in name{};
  socklen_t size = sizeof name;
  EXPECT_OK(rgetsockname(fd, any_of(name), &size));
  return name;
}

inline Socket listen_here() {
  Socket s = open_socket();
  sockaddr_in here = loopback();
  EXPECT_OK(rbind(s.fd(), any_of(here), sizeof here));
  EXPECT_OK(rlisten(s.fd(), 8));
  return s;
}

struct Pair {
  Socket client;
  Socket server;
};

inline Pair connect_to(const Socket& listener, Socket client) {
  sockaddr_in there = name_of(listener.fd());
  auto accepted = std::async(std::launch::async,
                             [&listener] { return raccept(listener.fd(), nullptr, nullptr); });
  EXPECT_OK(rconnect(client.fd(), any_of(there), sizeof there));
  return {std::move(client), Socket{accepted.get()}};
}

inline Pair connected_pair() {
  const Socket listener = listen_here();
  return connect_to(listener, open_socket());
}

inline std::vector<uint8_t> receive(int fd, size_t count) {
  std::vector<uint8_t> b(count);
  EXPECT_EQ(rrecv(fd, b.data(), count, MSG_WAITALL), static_cast<ssize_t>(count))
      << strerror(errno);
  return b;
}

inline void send_all(int fd, const std::vector<uint8_t>& b) {
  EXPECT_EQ(rsend(fd, b.data(), b.size(), 0), static_cast<ssize_t>(b.size())) << strerror(errno);
}

inline short events_of(int fd, short wanted, int timeout) {
  pollfd p{fd, wanted, 0};
  return rpoll(&p, 1, timeout) == 1 ? p.revents : 0;
}

inline int error_of(int fd) {
  int error = -1;
  socklen_t size = sizeof error;
  EXPECT_OK(rgetsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size));
  return error;
}

// A peer that speaks by verbs: it says what it likes.
class Peer {
 public:
  explicit Peer(const Socket& listener) : channel_(rdma_create_event_channel()) {
    rdma_cm_id* id = nullptr;
    EXPECT_OK(rdma_create_id(channel_.get(), &id, nullptr, RDMA_PS_TCP));
    id_.reset(id);
    sockaddr_in there = name_of(listener.fd());
    EXPECT_OK(rdma_resolve_addr(id, nullptr, any_of(there), 5000));
    (void)expect_event(channel_.get(), RDMA_CM_EVENT_ADDR_RESOLVED);
    EXPECT_OK(rdma_resolve_route(id, 5000));
    (void)expect_event(channel_.get(), RDMA_CM_EVENT_ROUTE_RESOLVED);
    ibv_qp_init_attr qp{};
    qp.qp_type = IBV_QPT_RC;
    qp.cap = {16, 400, 1, 1, 64};
    EXPECT_OK(rdma_create_qp(id, nullptr, &qp));
    mr_ = rdma_reg_write(id, memory_.data(), memory_.size());
    for (uint64_t i = 0; i < 100; ++i)
      EXPECT_OK(rdma_post_recv(id, nullptr, memory_.data(), 4, mr_));
  }
  ~Peer() {
    if (mr_ != nullptr) rdma_dereg_mr(mr_);
  }

  // With this private data. The event that answers.
  rdma_cm_event_type connect(const std::vector<uint8_t>& data) {
    rdma_conn_param c{};
    c.private_data = data.data();
    c.private_data_len = static_cast<uint8_t>(data.size());
    c.initiator_depth = c.responder_resources = 1;
    EXPECT_OK(rdma_connect(id_.get(), &c));
    const OwnedEvent e = next_event(channel_.get());
    EXPECT_NE(e, nullptr);
    return e == nullptr ? RDMA_CM_EVENT_DEVICE_REMOVAL : e->event;
  }
  // As it should be.
  std::vector<uint8_t> private_data() const {
    std::vector<uint8_t> d(40);
    d[0] = 1;
    d[3] = 100;
    put(d, 8, reinterpret_cast<uint64_t>(memory_.data()) + 1024, 2);
    put(d, 24, reinterpret_cast<uint64_t>(memory_.data()) + 2048, 512);
    return d;
  }
  void say(uint32_t word) {
    EXPECT_OK(rdma_post_send(id_.get(), nullptr, &word, sizeof word, nullptr, IBV_SEND_INLINE));
  }
  void leave() { EXPECT_OK(rdma_disconnect(id_.get())); }

 private:
  void put(std::vector<uint8_t>& d, size_t at, uint64_t address, uint32_t length) const {
    for (size_t i = 0; i < 8; ++i) d[at + i] = static_cast<uint8_t>(address >> (56 - 8 * i));
    for (size_t i = 0; i < 4; ++i) d[at + 8 + i] = static_cast<uint8_t>(mr_->rkey >> (24 - 8 * i));
    for (size_t i = 0; i < 4; ++i) d[at + 12 + i] = static_cast<uint8_t>(length >> (24 - 8 * i));
  }

  OwnedChannel channel_;
  std::vector<uint8_t> memory_ = std::vector<uint8_t>(4096);
  OwnedId id_;
  ibv_mr* mr_ = nullptr;
};

}  // namespace weft::test::rsockets
