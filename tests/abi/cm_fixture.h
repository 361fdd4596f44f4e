// Channels, Ids and connected pairs, for tests of librdmacm.so.1. The tests are linked to the built
// libraries and use nothing but Debian's headers, like any program.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace weft::test {

// Fails with errno's words in the message.
#define EXPECT_OK(call) EXPECT_EQ(call, 0) << strerror(errno)
#define ASSERT_OK(call) ASSERT_EQ(call, 0) << strerror(errno)
#define EXPECT_ERRNO(error, call) EXPECT_EQ(::weft::test::errno_of(call), error)

// 0, or errno of a call that gave -1.
inline int errno_of(int result) {
  return result == -1 ? errno : result;
}

struct DestroyChannel {
  void operator()(rdma_event_channel* c) const { rdma_destroy_event_channel(c); }
};
using OwnedChannel = std::unique_ptr<rdma_event_channel, DestroyChannel>;

struct AckEvent {
  void operator()(rdma_cm_event* e) const { EXPECT_EQ(rdma_ack_cm_event(e), 0); }
};
using OwnedEvent = std::unique_ptr<rdma_cm_event, AckEvent>;

// With its queue pair, as rdma_destroy_ep() does it.
struct DestroyId {
  void operator()(rdma_cm_id* id) const { rdma_destroy_ep(id); }
};
using OwnedId = std::unique_ptr<rdma_cm_id, DestroyId>;

inline sockaddr_in loopback(uint16_t port = 0) {
  sockaddr_in a{};
  a.sin_family = AF_INET;
  a.sin_port = htons(port);
  a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return a;
}
inline sockaddr* any_of(sockaddr_in& a) {
  return reinterpret_cast<sockaddr*>(&a);
}
inline sockaddr* any_of(sockaddr_in6& a) {
  return reinterpret_cast<sockaddr*>(&a);
}

// The next event, or nothing after ten seconds.
inline OwnedEvent next_event(rdma_event_channel* channel) {
  pollfd p{channel->fd, POLLIN, 0};
  if (poll(&p, 1, 10'000) != 1) return nullptr;
  rdma_cm_event* e = nullptr;
  return rdma_get_cm_event(channel, &e) == 0 ? OwnedEvent{e} : nullptr;
}
inline bool quiet_for(rdma_event_channel* channel, int ms) {
  pollfd p{channel->fd, POLLIN, 0};
  return poll(&p, 1, ms) == 0;
}
inline OwnedEvent expect_event(rdma_event_channel* channel, rdma_cm_event_type kind) {
  OwnedEvent e = next_event(channel);
  EXPECT_NE(e, nullptr) << "no " << rdma_event_str(kind) << " came";
  if (e != nullptr) {
    EXPECT_STREQ(rdma_event_str(e->event), rdma_event_str(kind)) << e->status;
  }
  return e;
}

inline ibv_qp_init_attr qp_attributes() {
  ibv_qp_init_attr a{};
  a.cap = {.max_send_wr = 8,
           .max_recv_wr = 8,
           .max_send_sge = 2,
           .max_recv_sge = 2,
           .max_inline_data = 64};
  a.qp_type = IBV_QPT_RC;
  a.sq_sig_all = 1;
  return a;
}
inline int create_qp(rdma_cm_id* id) {
  ibv_qp_init_attr a = qp_attributes();
  return rdma_create_qp(id, nullptr, &a);
}

// Private data that differs from byte to byte.
inline std::vector<uint8_t> bytes(size_t n, unsigned seed) {
  std::vector<uint8_t> v(n);
  for (size_t i = 0; i < n; ++i) v[i] = static_cast<uint8_t>(i * 7 + seed * 31 + 1);
  return v;
}
inline std::vector<uint8_t> private_data(const rdma_cm_event& e) {
  const auto* p = static_cast<const uint8_t*>(e.param.conn.private_data);
  return {p, p + e.param.conn.private_data_len};
}
inline rdma_conn_param parameters(const std::vector<uint8_t>& data = {}) {
  rdma_conn_param p{};
  p.private_data = data.data();
  p.private_data_len = static_cast<uint8_t>(data.size());
  p.responder_resources = RDMA_MAX_RESP_RES;
  p.initiator_depth = RDMA_MAX_INIT_DEPTH;
  p.retry_count = p.rnr_retry_count = 7;
  return p;
}

// Posts a receive on `to`, sends from `from`, and sees the bytes arrive.
inline void exchange(rdma_cm_id* from, rdma_cm_id* to, unsigned seed) {
  std::vector<uint8_t> out = bytes(1000, seed);
  std::vector<uint8_t> in(1000);
  ibv_mr* send_mr = rdma_reg_msgs(from, out.data(), out.size());
  ibv_mr* recv_mr = rdma_reg_msgs(to, in.data(), in.size());
  ASSERT_NE(send_mr, nullptr);
  ASSERT_NE(recv_mr, nullptr);
  ASSERT_OK(rdma_post_recv(to, &in, in.data(), in.size(), recv_mr));
  ASSERT_OK(rdma_post_send(from, &out, out.data(), out.size(), send_mr, 0));
  ibv_wc wc{};
  ASSERT_EQ(rdma_get_recv_comp(to, &wc), 1);
  EXPECT_EQ(wc.status, IBV_WC_SUCCESS) << ibv_wc_status_str(wc.status);
  EXPECT_EQ(wc.byte_len, 1000U);
  EXPECT_EQ(in, out);
  ASSERT_EQ(rdma_get_send_comp(from, &wc), 1);
  EXPECT_EQ(wc.status, IBV_WC_SUCCESS) << ibv_wc_status_str(wc.status);
  EXPECT_OK(rdma_dereg_mr(send_mr));
  EXPECT_OK(rdma_dereg_mr(recv_mr));
}

class CmTest : public testing::Test {
 protected:
  OwnedId make_id(rdma_event_channel* on, rdma_port_space space = RDMA_PS_TCP) {
    rdma_cm_id* id = nullptr;
    EXPECT_OK(rdma_create_id(on, &id, this, space));
    return OwnedId{id};
  }
  // Listens on a port of the system's choice.
  OwnedId listen_on(rdma_event_channel* on, int backlog = 0) {
    OwnedId id = make_id(on);
    sockaddr_in at = loopback();
    EXPECT_OK(rdma_bind_addr(id.get(), any_of(at)));
    EXPECT_OK(rdma_listen(id.get(), backlog));
    return id;
  }
  // Ready to connect to `port` of this host.
  OwnedId resolved(rdma_event_channel* on, uint16_t port) {
    OwnedId id = make_id(on);
    sockaddr_in to = loopback(port);
    EXPECT_OK(rdma_resolve_addr(id.get(), nullptr, any_of(to), 2000));
    expect_event(on, RDMA_CM_EVENT_ADDR_RESOLVED);
    EXPECT_OK(rdma_resolve_route(id.get(), 2000));
    expect_event(on, RDMA_CM_EVENT_ROUTE_RESOLVED);
    return id;
  }
  static uint16_t port_of(const OwnedId& id) { return ntohs(rdma_get_src_port(id.get())); }

  // `client` and `server` connected, each with a queue pair of its own.
  void connect_pair() {
    listener = listen_on(passive.get());
    client = resolved(active.get(), port_of(listener));
    ASSERT_OK(create_qp(client.get()));
    rdma_conn_param p = parameters();
    ASSERT_OK(rdma_connect(client.get(), &p));
    OwnedEvent request = expect_event(passive.get(), RDMA_CM_EVENT_CONNECT_REQUEST);
    ASSERT_NE(request, nullptr);
    server.reset(request->id);
    ASSERT_OK(create_qp(server.get()));
    ASSERT_OK(rdma_accept(server.get(), nullptr));
    expect_event(passive.get(), RDMA_CM_EVENT_ESTABLISHED);
    expect_event(active.get(), RDMA_CM_EVENT_ESTABLISHED);
  }

  OwnedChannel active{rdma_create_event_channel()};
  OwnedChannel passive{rdma_create_event_channel()};
  OwnedId listener;
  OwnedId client;
  OwnedId server;
};

}  // namespace weft::test
