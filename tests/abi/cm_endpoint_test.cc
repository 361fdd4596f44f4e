// Synchronous Ids and endpoints: each call waits for what it brings about.
#include <thread>

#include "tests/abi/cm_fixture.h"

namespace weft::test {
namespace {

struct FreeInfo {
  void operator()(rdma_addrinfo* i) const { rdma_freeaddrinfo(i); }
};
using OwnedInfo = std::unique_ptr<rdma_addrinfo, FreeInfo>;

OwnedInfo info(bool passive, uint16_t port) {
  rdma_addrinfo hints{};
  hints.ai_flags = passive ? RAI_PASSIVE : 0;
  hints.ai_port_space = RDMA_PS_TCP;
  rdma_addrinfo* i = nullptr;
  EXPECT_EQ(rdma_getaddrinfo("127.0.0.1", std::to_string(port).c_str(), &hints, &i), 0);
  return OwnedInfo{i};
}

OwnedId endpoint(const OwnedInfo& i, ibv_qp_init_attr* attr) {
  rdma_cm_id* id = nullptr;
  EXPECT_OK(rdma_create_ep(&id, i.get(), nullptr, attr));
  return OwnedId{id};
}

OwnedId listening_endpoint() {
  ibv_qp_init_attr attr = qp_attributes();
  attr.qp_type = {};  // the address information says it
  OwnedId id = endpoint(info(true, 0), &attr);
  EXPECT_OK(rdma_listen(id.get(), 0));
  return id;
}

TEST(CmEndpoint, ConnectSendDisconnect) {
  const OwnedId listener = listening_endpoint();
  std::array<uint8_t, 16> in{};
  std::thread server([&] {
    rdma_cm_id* id = nullptr;
    ASSERT_OK(rdma_get_request(listener.get(), &id));
    const OwnedId owned{id};
    ASSERT_NE(id->qp, nullptr) << "made from the listener's attributes";
    ibv_mr* mr = rdma_reg_msgs(id, in.data(), in.size());
    ASSERT_OK(rdma_post_recv(id, nullptr, in.data(), in.size(), mr));
    ASSERT_OK(rdma_accept(id, nullptr));
    ibv_wc wc{};
    ASSERT_EQ(rdma_get_recv_comp(id, &wc), 1);
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    EXPECT_OK(rdma_disconnect(id));
    EXPECT_OK(rdma_dereg_mr(mr));
  });
  ibv_qp_init_attr attr = qp_attributes();
  attr.qp_type = {};
  const OwnedId client = endpoint(info(false, ntohs(rdma_get_src_port(listener.get()))), &attr);
  ASSERT_NE(client->qp, nullptr);
  EXPECT_EQ(attr.qp_type, IBV_QPT_RC);
  ASSERT_OK(rdma_connect(client.get(), nullptr));
  EXPECT_EQ(client->event->event, RDMA_CM_EVENT_ESTABLISHED);
  std::array<uint8_t, 16> out{9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 11, 12, 13, 14, 15, 16};
  ASSERT_OK(
      rdma_post_send(client.get(), nullptr, out.data(), out.size(), nullptr, IBV_SEND_INLINE));
  ibv_wc wc{};
  ASSERT_EQ(rdma_get_send_comp(client.get(), &wc), 1);
  EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  server.join();
  EXPECT_OK(rdma_disconnect(client.get()));
  EXPECT_OK(rdma_disconnect(client.get())) << "nothing left to wait for";
  EXPECT_EQ(in, out);
}

// Nothing is left to be acknowledged of the request, for which the listener's end would wait.
TEST(CmEndpoint, AListenerOfDatagramsMayGoBeforeWhatItAccepted) {
  rdma_addrinfo hints{};
  hints.ai_flags = RAI_PASSIVE;
  hints.ai_port_space = RDMA_PS_UDP;
  rdma_addrinfo* i = nullptr;
  ASSERT_OK(rdma_getaddrinfo("127.0.0.1", "0", &hints, &i));
  const OwnedInfo here{i};
  ibv_qp_init_attr attr = qp_attributes();
  attr.qp_type = IBV_QPT_UD;
  OwnedId listener = endpoint(here, &attr);
  ASSERT_OK(rdma_listen(listener.get(), 0));
  std::thread server([&] {
    rdma_cm_id* id = nullptr;
    ASSERT_OK(rdma_get_request(listener.get(), &id));
    const OwnedId owned{id};
    ASSERT_OK(rdma_accept(id, nullptr));
    EXPECT_EQ(id->event, nullptr);
    listener.reset();
  });
  hints.ai_flags = 0;
  const auto port = std::to_string(ntohs(rdma_get_src_port(listener.get())));
  ASSERT_OK(rdma_getaddrinfo("127.0.0.1", port.c_str(), &hints, &i));
  const OwnedInfo there{i};
  attr = qp_attributes();
  attr.qp_type = IBV_QPT_UD;
  const OwnedId client = endpoint(there, &attr);
  EXPECT_OK(rdma_connect(client.get(), nullptr));
  server.join();
}

TEST(CmEndpoint, RejectionIsAnError) {
  const OwnedId listener = listening_endpoint();
  std::thread server([&] {
    rdma_cm_id* id = nullptr;
    ASSERT_OK(rdma_get_request(listener.get(), &id));
    EXPECT_OK(rdma_reject(id, nullptr, 0));
    rdma_destroy_ep(id);
  });
  ibv_qp_init_attr attr = qp_attributes();
  const OwnedId client = endpoint(info(false, ntohs(rdma_get_src_port(listener.get()))), &attr);
  EXPECT_ERRNO(ECONNREFUSED, rdma_connect(client.get(), nullptr));
  EXPECT_EQ(client->event->event, RDMA_CM_EVENT_REJECTED);
  server.join();
}

TEST(CmEndpoint, NobodyListens) {
  uint16_t port;
  {
    const OwnedId gone = listening_endpoint();
    port = ntohs(rdma_get_src_port(gone.get()));
  }
  ibv_qp_init_attr attr = qp_attributes();
  const OwnedId client = endpoint(info(false, port), &attr);
  EXPECT_ERRNO(ECONNREFUSED, rdma_connect(client.get(), nullptr));
}

TEST(CmEndpoint, RequestsNeedASynchronousListener) {
  const OwnedChannel channel{rdma_create_event_channel()};
  rdma_cm_id* id = nullptr;
  ASSERT_OK(rdma_create_id(channel.get(), &id, nullptr, RDMA_PS_TCP));
  const OwnedId owned{id};
  rdma_cm_id* request = nullptr;
  EXPECT_ERRNO(EINVAL, rdma_get_request(id, &request));
}

TEST(CmEndpoint, MigrationMakesItAsynchronous) {
  ibv_qp_init_attr attr = qp_attributes();
  const OwnedId id = endpoint(info(false, 9), &attr);
  EXPECT_ERRNO(EINVAL, rdma_migrate_id(id.get(), nullptr)) << "it is synchronous already";
  OwnedChannel channel{rdma_create_event_channel()};
  ASSERT_OK(rdma_migrate_id(id.get(), channel.get()));
  EXPECT_EQ(id->event, nullptr);
  ASSERT_OK(rdma_connect(id.get(), nullptr)) << "does not wait";
  expect_event(channel.get(), RDMA_CM_EVENT_REJECTED);
  ASSERT_OK(rdma_migrate_id(id.get(), nullptr)) << "and back";
}

// Data that rdma_getaddrinfo gives goes in front of the program's own.
TEST(CmEndpoint, ConnectDataOfTheAddressInformation) {
  const OwnedId listener = listening_endpoint();
  std::vector<uint8_t> seen;
  std::thread server([&] {
    rdma_cm_id* id = nullptr;
    ASSERT_OK(rdma_get_request(listener.get(), &id));
    seen = private_data(*id->event);
    rdma_destroy_ep(id);
  });
  OwnedInfo i = info(false, ntohs(rdma_get_src_port(listener.get())));
  const auto first = bytes(8, 1);
  i->ai_connect = malloc(first.size());
  memcpy(i->ai_connect, first.data(), first.size());
  i->ai_connect_len = first.size();
  ibv_qp_init_attr attr = qp_attributes();
  const OwnedId client = endpoint(i, &attr);
  const auto second = bytes(8, 2);
  rdma_conn_param p = parameters(second);
  EXPECT_ERRNO(ECONNREFUSED, rdma_connect(client.get(), &p));
  server.join();
  auto expected = first;
  expected.insert(expected.end(), second.begin(), second.end());
  EXPECT_EQ(seen, expected);
}

}  // namespace
}  // namespace weft::test
