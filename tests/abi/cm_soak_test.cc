// Connections by rdma_cm in numbers: ten thousand one after the other, a thousand at once. Each
// carries data, and nothing of them is left behind.
#include <algorithm>
#include <map>

#include "tests/abi/cm_counts.h"
#include "tests/abi/cm_fixture.h"
#include "tests/support/rc_way.h"

namespace weft::test {
namespace {

// The closing of a connection ends when the peer has closed, too.
constexpr size_t kClosing = 4;

class CmSoak : public CmTest {
 protected:
  void SetUp() override {
    limit = raise_descriptor_limit();
    ASSERT_NE(client = resolved(active.get(), 9), nullptr);
    device = client->verbs;  // stays open: librdmacm shares it
    client.reset();
    pd = ibv_alloc_pd(device);
    cq = ibv_create_cq(device, 8192, nullptr, nullptr, 0);
    ASSERT_NE(pd, nullptr);
    ASSERT_NE(cq, nullptr);
    ASSERT_NE(mr = ibv_reg_mr(pd, memory.data(), sizeof memory, IBV_ACCESS_LOCAL_WRITE), nullptr);
    listener = listen_on(passive.get());
  }
  void TearDown() override {
    server.reset();
    client.reset();
    EXPECT_EQ(ibv_dereg_mr(mr), 0);
    EXPECT_EQ(ibv_destroy_cq(cq), 0);
    EXPECT_EQ(ibv_dealloc_pd(pd), 0);
  }

  // With the completion queue that all share: its own two, and their channels, would make five
  // descriptors of each Id.
  void give_pair(rdma_cm_id* id) {
    ibv_qp_init_attr a = qp_attributes();
    a.send_cq = a.recv_cq = cq;
    ASSERT_OK(rdma_create_qp(id, pd, &a));
    ports.see(id->qp);
  }
  void post_receive(rdma_cm_id* id, size_t slot) {
    ASSERT_OK(rdma_post_recv(id, reinterpret_cast<void*>(slot), &memory[slot], 8, mr));
  }
  void send(rdma_cm_id* id, size_t slot, uint64_t value) {
    memory[slot] = value;
    ASSERT_OK(rdma_post_send(id, reinterpret_cast<void*>(slot), &memory[slot], 8, mr, 0));
  }
  // The next completion, whatever it is of.
  ibv_wc completion() {
    ibv_wc wc{};
    wc.status = IBV_WC_GENERAL_ERR;
    for (int64_t i = 0; i < 2'000'000'000; ++i) {
      if (ibv_poll_cq(cq, 1, &wc) == 1) break;
    }
    return wc;
  }

  // From one Id to the other, `value` arrives and both sides are told.
  void carry(rdma_cm_id* from, rdma_cm_id* to, uint64_t value) {
    memory[1] = 0;
    post_receive(to, 1);
    send(from, 0, value);
    for (int i = 0; i < 2; ++i) {
      const ibv_wc wc = completion();
      ASSERT_EQ(wc.status, IBV_WC_SUCCESS) << ibv_wc_status_str(wc.status);
    }
    ASSERT_EQ(memory[1], value);
  }

  void connect() {
    client = resolved(active.get(), port_of(listener));
    give_pair(client.get());
    rdma_conn_param p = parameters();
    ASSERT_OK(rdma_connect(client.get(), &p));
    const OwnedEvent request = expect_event(passive.get(), RDMA_CM_EVENT_CONNECT_REQUEST);
    ASSERT_NE(request, nullptr);
    server.reset(request->id);
    give_pair(server.get());
    ASSERT_OK(rdma_accept(server.get(), nullptr));
    expect_event(passive.get(), RDMA_CM_EVENT_ESTABLISHED);
    expect_event(active.get(), RDMA_CM_EVENT_ESTABLISHED);
  }

  size_t limit = 0;
  Ports ports;
  ibv_context* device = nullptr;
  ibv_pd* pd = nullptr;
  ibv_cq* cq = nullptr;
  ibv_mr* mr = nullptr;
  std::array<uint64_t, 4096> memory{};
};

TEST_F(CmSoak, TenThousandConnectionsLeaveNothingBehind) {
  const auto once = [&](uint64_t i) {
    connect();
    if (HasFatalFailure()) return;
    const bool up = i % 2 == 0;
    carry(up ? client.get() : server.get(), up ? server.get() : client.get(),
          i * 0x9e3779b97f4a7c15U + 1);
    if (HasFatalFailure()) return;
    post_receive(server.get(), 2);  // which nothing comes for
    ASSERT_OK(rdma_disconnect(i % 3 == 0 ? server.get() : client.get()));
    expect_event(active.get(), RDMA_CM_EVENT_DISCONNECTED);
    expect_event(passive.get(), RDMA_CM_EVENT_DISCONNECTED);
    ASSERT_EQ(completion().status, IBV_WC_WR_FLUSH_ERR);
    client.reset();
    server.reset();
  };
  for (uint64_t i = 0; i < 500; ++i) {
    once(i);
    ASSERT_FALSE(HasFailure()) << "connection " << i;
  }
  const Counts before = Counts::now(ports);
  const size_t ports_before = ports.size();
  for (uint64_t i = 0; i < 10'000; ++i) {
    once(i);
    ASSERT_FALSE(HasFailure()) << "connection " << i;
  }
  const Counts after = Counts::now(ports);
  EXPECT_LE(after.descriptors, before.descriptors + kClosing);
  EXPECT_EQ(after.threads, before.threads);
  // Sixteen bytes kept of each connection would be seen. By datagrams, the channels between the
  // ports keep theirs until they have been idle for two minutes (spec/wdp-rd 2.4), and hide that.
  if (rc_by_udp()) return;
  EXPECT_LE(after.heap, before.heap + heap_growth(ports.size() - ports_before))
      << "before: " << before << "; after: " << after << "; " << ports.size() - ports_before
      << " more ports";
}

TEST_F(CmSoak, AThousandConnectionsAtOnce) {
  constexpr size_t kMany = 1000;  // two thousand Ids, each with a queue pair
  if (limit < 3 * kMany) GTEST_SKIP() << "only " << limit << " descriptors are allowed";
  const auto round = [&](uint64_t salt) {
    std::vector<OwnedId> clients;
    for (size_t i = 0; i < kMany; ++i) {
      clients.push_back(resolved(active.get(), port_of(listener)));
      give_pair(clients[i].get());
      post_receive(clients[i].get(), i);
      // Its number goes along, for requests need not come in the order of the connects.
      const uint32_t number = static_cast<uint32_t>(i);
      rdma_conn_param p = parameters();
      p.private_data = &number;
      p.private_data_len = sizeof number;
      ASSERT_OK(rdma_connect(clients[i].get(), &p));
    }
    std::vector<OwnedId> servers(kMany);
    for (size_t established = 0; established < kMany;) {
      const OwnedEvent e = next_event(passive.get());
      ASSERT_NE(e, nullptr) << established << " are established";
      if (e->event == RDMA_CM_EVENT_ESTABLISHED) {
        ++established;
        continue;
      }
      ASSERT_EQ(e->event, RDMA_CM_EVENT_CONNECT_REQUEST);
      uint32_t number = kMany;
      ASSERT_GE(e->param.conn.private_data_len, sizeof number);
      std::memcpy(&number, e->param.conn.private_data, sizeof number);
      ASSERT_LT(number, kMany);
      ASSERT_EQ(servers[number], nullptr) << "two requests of one connect";
      servers[number].reset(e->id);
      give_pair(e->id);
      ASSERT_OK(rdma_accept(e->id, nullptr));
    }
    std::set<uint32_t> numbers;
    for (size_t i = 0; i < kMany; ++i) {
      expect_event(active.get(), RDMA_CM_EVENT_ESTABLISHED);
      numbers.insert(clients[i]->qp->qp_num);
      numbers.insert(servers[i]->qp->qp_num);
    }
    EXPECT_EQ(numbers.size(), 2 * kMany);
    // Now all at once.
    for (size_t i = 0; i < kMany; ++i) {
      send(servers[i].get(), kMany + i, (salt + i) * 0x9e3779b97f4a7c15U);
    }
    for (size_t i = 0; i < 2 * kMany; ++i) ASSERT_EQ(completion().status, IBV_WC_SUCCESS);
    for (size_t i = 0; i < kMany; ++i) {
      ASSERT_EQ(memory[i], (salt + i) * 0x9e3779b97f4a7c15U) << "connection " << i;
    }
    for (size_t i = 0; i < kMany; ++i) ASSERT_OK(rdma_disconnect(clients[i].get()));
    for (size_t i = 0; i < kMany; ++i) {
      expect_event(active.get(), RDMA_CM_EVENT_DISCONNECTED);
      expect_event(passive.get(), RDMA_CM_EVENT_DISCONNECTED);
    }
  };
  // What lists and tables have grown to in the first round they keep.
  round(1);
  ASSERT_FALSE(HasFailure());
  const Counts before = Counts::now(ports);
  const size_t ports_before = ports.size();
  round(2);
  const Counts after = Counts::now(ports);
  EXPECT_LE(after.descriptors, before.descriptors + kClosing);
  EXPECT_EQ(after.threads, before.threads);
  EXPECT_LE(after.heap, before.heap + heap_growth(ports.size() - ports_before))
      << "before: " << before << "; after: " << after;
}

}  // namespace
}  // namespace weft::test
