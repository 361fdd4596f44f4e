// RC over UDP (spec/wdp-rd 7) when processes end: who is killed and begins anew on its port is
// reached at once, and who exits is heard of.

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <rdma/rdma_cma.h>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <thread>

#include "tests/verbs/own_process.h"
#include "tests/verbs/peer_process.h"

namespace weft::test {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

struct Signal {
  Signal() { check(pipe(ends) == 0, "pipe"); }
  void give() const { check(write(ends[1], "x", 1) == 1, "write"); }
  void await() const {
    char c = 0;
    check(read(ends[0], &c, 1) == 1, "read");
  }
  int ends[2];
};

bool is_free(int type, uint16_t port) {
  const int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_port = htons(port);
  const bool bound = bind(fd, reinterpret_cast<sockaddr*>(&any), sizeof any) == 0;
  close(fd);
  return bound;
}

// Below those that the system hands out.
uint16_t free_port() {
  auto port = static_cast<uint16_t>(12'000 + getpid() % 10'000);
  while (!is_free(SOCK_DGRAM, port) || !is_free(SOCK_STREAM, port)) ++port;
  return port;
}

// No connection of this process goes by TCP any more.
bool is_by_udp() {
  for (int fd = 0; fd < 1024; ++fd) {
    sockaddr_storage peer{};
    socklen_t size = sizeof peer;
    const bool connected = getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) == 0;
    if (connected && (peer.ss_family == AF_INET || peer.ss_family == AF_INET6)) return false;
  }
  return true;
}

struct Side {
  Side() {
    for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<uint8_t>(i * 31 + (i >> 8));
  }
  QpPtr pair() { return make_qp(a, cq.get(), {.depth = 8}); }
  // Writes all of it, and reads it back.
  void use(ibv_qp* qp, const PeerCard& peer) {
    ibv_send_wr wr{};
    wr.opcode = IBV_WR_RDMA_WRITE;
    wr.wr.rdma.remote_addr = peer.address;
    wr.wr.rdma.rkey = peer.rkey;
    check_errno(post_send(qp, wr, {sge(out.data(), out.size(), out_mr.get())}), "write");
    wr.opcode = IBV_WR_RDMA_READ;
    wr.send_flags = IBV_SEND_SIGNALED;
    std::fill(in.begin(), in.end(), uint8_t{0});
    check_errno(post_send(qp, wr, {sge(in.data(), in.size(), in_mr.get())}), "read");
    check(collect(cq.get(), 1).at(0).status == IBV_WC_SUCCESS, "it is read");
    check(in == out, "what was written");
  }
  const Adapter a;
  const ibv_gid gid = own_gid(a);
  CqPtr cq = a.cq(16);
  std::vector<uint8_t> out = std::vector<uint8_t>(100'000);
  std::vector<uint8_t> in = std::vector<uint8_t>(100'000);
  MrPtr out_mr = a.reg(out.data(), out.size());
  MrPtr in_mr = a.reg(in.data(), in.size());
};

auto milliseconds_since(steady_clock::time_point t) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(steady_clock::now() - t).count();
}

// `connected`: the connection with the one that is killed is there yet; else the channel alone.
void a_peer_begins_anew(bool connected) {
  const Signal begin;
  const std::string port = std::to_string(free_port());
  const auto on_port = [&](bool waits) {
    return [&, waits] {
      if (waits) begin.await();
      setenv("WEFT_UC", "static", 1);
      setenv("WEFT_UC_PORT", port.c_str(), 1);
    };
  };
  const auto nothing = [](ibv_qp*, const ibv_mr*) {};
  PeerProcess first{nothing, {}, on_port(false)};
  PeerProcess second{nothing, {}, on_port(true)};
  Side side;
  QpPtr qp = side.pair();
  const PeerCard before = first.connect_to(qp.get(), side.gid);
  side.use(qp.get(), before);
  if (!connected) {
    qp.reset();
    std::this_thread::sleep_for(100ms);  // so that both ends have left the channel
  }
  first.kill_now();
  begin.give();
  const QpPtr next = side.pair();
  const PeerCard after = second.connect_to(next.get(), side.gid);
  check(after.qpn == before.qpn, "the same port");
  const auto t = steady_clock::now();
  side.use(next.get(), after);
  const auto took = milliseconds_since(t);
  std::cerr << "used " << took << " ms after the connection was agreed on\n";
  check(took < 5000, "at once");
  check(is_by_udp(), "it goes by UDP");
  if (!connected) return;
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_RDMA_WRITE;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.wr.rdma = {.remote_addr = before.address, .rkey = before.rkey};
  if (post_send(qp.get(), wr, {sge(side.out.data(), 8, side.out_mr.get())}) != 0) return;
  check(collect(side.cq.get(), 1).at(0).status != IBV_WC_SUCCESS, "the first one has ended");
}

// --- by rdma_cm, which tells a program of the end

rdma_addrinfo* address(const char* node, const char* port, int flags) {
  rdma_addrinfo hints{};
  hints.ai_port_space = RDMA_PS_TCP;
  hints.ai_flags = flags;
  rdma_addrinfo* found = nullptr;
  check(rdma_getaddrinfo(node, port, &hints, &found) == 0, "rdma_getaddrinfo");
  return found;
}

rdma_cm_id* endpoint(rdma_addrinfo* to) {
  ibv_qp_init_attr attr{};
  attr.cap = {8, 8, 1, 1, 0};
  rdma_cm_id* id = nullptr;
  check(rdma_create_ep(&id, to, nullptr, &attr) == 0, "rdma_create_ep");
  rdma_freeaddrinfo(to);
  return id;
}

// Takes one connection, and exits when it is told to. Destroys nothing.
[[noreturn]] void serve(const std::string& port, const Signal& listens, const Signal& exit_now) {
  rdma_cm_id* const listener = endpoint(address(nullptr, port.c_str(), RAI_PASSIVE));
  check(rdma_listen(listener, 1) == 0, "rdma_listen");
  listens.give();
  rdma_cm_id* id = nullptr;
  check(rdma_get_request(listener, &id) == 0, "rdma_get_request");
  check(rdma_accept(id, nullptr) == 0, "rdma_accept");
  exit_now.await();
  std::exit(0);
}

// The connection is at rest: it would ask after seconds.
void a_peer_exits() {
  const Signal listens;
  const Signal exit_now;
  const std::string port = std::to_string(free_port());
  const pid_t server = fork();
  check(server >= 0, "fork");
  if (server == 0) {
    with({}, [&] { serve(port, listens, exit_now); });
  }
  listens.await();
  rdma_cm_id* const id = endpoint(address("127.0.0.1", port.c_str(), RAI_NUMERICHOST));
  check(rdma_connect(id, nullptr) == 0, "rdma_connect");
  std::this_thread::sleep_for(3s);
  check(is_by_udp(), "it goes by UDP");
  const auto t = steady_clock::now();
  exit_now.give();
  rdma_cm_event* event = nullptr;
  check(rdma_get_cm_event(id->channel, &event) == 0, "rdma_get_cm_event");
  check(event->event == RDMA_CM_EVENT_DISCONNECTED, rdma_event_str(event->event));
  const auto took = milliseconds_since(t);
  std::cerr << "heard of the exit after " << took << " ms\n";
  check(took < 5000, "before it asks");  // after 10 s at rest
  rdma_ack_cm_event(event);
  rdma_destroy_ep(id);
  int status = 0;
  check(waitpid(server, &status, 0) == server && status == 0, "it has ended well");
}

class RcByUdpPeers : public testing::Test {
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(RcByUdpPeers, one_that_was_killed_and_begins_anew_is_reached_at_once) {
  EXPECT_EXIT(with({{"WEFT_RC", "udp"}}, [] { a_peer_begins_anew(true); }),
              ::testing::ExitedWithCode(0), "used");
}

TEST_F(RcByUdpPeers, also_by_a_channel_that_has_no_connection) {
  EXPECT_EXIT(with({{"WEFT_RC", "udp"}}, [] { a_peer_begins_anew(false); }),
              ::testing::ExitedWithCode(0), "used");
}

TEST_F(RcByUdpPeers, one_that_exits_is_heard_of) {
  EXPECT_EXIT(with({{"WEFT_RC", "udp"}}, [] { a_peer_exits(); }), ::testing::ExitedWithCode(0),
              "heard");
}

}  // namespace
}  // namespace weft::test
