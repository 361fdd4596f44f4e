// Connections of rdma_cm with WEFT_RC=udp begin in a channel (spec/wdp-rd 7.6): no TCP connection
// is made, but where the peer wants one. Whatever else rdma_cm promises is asked by the other
// tests, which run with that option, too.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <thread>

#include "observe/counter_reader.h"
#include "stats/table.h"
#include "tests/abi/cm_counts.h"
#include "tests/abi/cm_fixture.h"

namespace weft::test {
namespace {

// What this process has counted.
uint64_t counted(const std::string& family) {
  const auto read = observe::read_process(0);
  if (!read.ok()) return UINT64_MAX;
  uint64_t sum = 0;
  for (size_t i = 0; i < read->device.size(); ++i) {
    if (stats::table()[i].family == family) sum += read->device[i];
  }
  return sum;
}

struct UdpSides final : CmTest {
  using CmTest::active;
  using CmTest::client;
  using CmTest::connect_pair;
  using CmTest::listen_on;
  using CmTest::listener;
  using CmTest::make_id;
  using CmTest::passive;
  using CmTest::port_of;
  using CmTest::resolved;
  using CmTest::server;
  void TestBody() override {}

  // A client of that listener asks; the request has come.
  OwnedEvent ask(uint16_t port, const std::vector<uint8_t>& data = {}) {
    client = resolved(active.get(), port);
    EXPECT_OK(create_qp(client.get()));
    rdma_conn_param p = parameters(data);
    p.responder_resources = 3;
    p.initiator_depth = 2;
    EXPECT_OK(rdma_connect(client.get(), &p));
    return expect_event(passive.get(), RDMA_CM_EVENT_CONNECT_REQUEST);
  }
  void both_established() {
    expect_event(passive.get(), RDMA_CM_EVENT_ESTABLISHED);
    expect_event(active.get(), RDMA_CM_EVENT_ESTABLISHED);
  }
  void both_end() {
    ASSERT_OK(rdma_disconnect(client.get()));
    expect_event(active.get(), RDMA_CM_EVENT_DISCONNECTED);
    expect_event(passive.get(), RDMA_CM_EVENT_DISCONNECTED);
  }
};

// The child of a death test says nothing of what fails in it by itself.
[[noreturn]] void end_of_child() {
  const testing::TestResult& r = *testing::UnitTest::GetInstance()->current_test_info()->result();
  for (int i = 0; i < r.total_part_count(); ++i) {
    const testing::TestPartResult& part = r.GetTestPartResult(i);
    if (part.failed()) std::fprintf(stderr, "line %d: %s\n", part.line_number(), part.summary());
  }
  _exit(r.Failed() ? 1 : 0);
}

// Does `body` in a process of its own.
void by_udp(const char* engines, const std::function<void(UdpSides&)>& body) {
  const auto run = [&] {
    setenv("WEFT_RC", "udp", 1);
    setenv("WEFT_ENGINES", engines, 1);
    UdpSides sides;
    body(sides);
    end_of_child();
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(0), "");
}

class CmByUdp : public testing::TestWithParam<const char*> {
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};
INSTANTIATE_TEST_SUITE_P(Engines, CmByUdp, testing::Values("1", "2"));

// A process of its own that does `body` until it is killed. It is there when `body` has said so.
class Other {
 public:
  explicit Other(const std::function<uint16_t(UdpSides&)>& body) {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    pid_ = fork();
    if (pid_ == 0) {
      close(ends[0]);
      UdpSides sides;
      const uint16_t said = body(sides);
      (void)!write(ends[1], &said, sizeof said);
      while (pause() != 0) {
      }
    }
    close(ends[1]);
    EXPECT_EQ(read(ends[0], &said_, sizeof said_), static_cast<ssize_t>(sizeof said_));
    close(ends[0]);
  }
  Other(const Other&) = delete;
  Other& operator=(const Other&) = delete;
  ~Other() { end(); }
  uint16_t said() const { return said_; }
  void end() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }

 private:
  pid_t pid_ = 0;
  uint16_t said_ = 0;
};

void connects_without_tcp(UdpSides& s) {
  s.listener = s.listen_on(s.passive.get());
  const auto question = bytes(56, 1);
  const auto answer = bytes(100, 2);
  {
    const OwnedEvent request = s.ask(UdpSides::port_of(s.listener), question);
    ASSERT_NE(request, nullptr);
    s.server.reset(request->id);
    EXPECT_EQ(request->listen_id, s.listener.get());
    EXPECT_EQ(private_data(*request), question);
    EXPECT_EQ(request->param.conn.responder_resources, 2);
    EXPECT_EQ(request->param.conn.initiator_depth, 3);
  }
  EXPECT_EQ(rdma_get_dst_port(s.server.get()), rdma_get_src_port(s.client.get()));
  EXPECT_EQ(rdma_get_src_port(s.server.get()), rdma_get_dst_port(s.client.get()));
  ASSERT_OK(create_qp(s.server.get()));
  rdma_conn_param p = parameters(answer);
  p.responder_resources = p.initiator_depth = 1;
  ASSERT_OK(rdma_accept(s.server.get(), &p));
  expect_event(s.passive.get(), RDMA_CM_EVENT_ESTABLISHED);
  {
    const OwnedEvent established = expect_event(s.active.get(), RDMA_CM_EVENT_ESTABLISHED);
    ASSERT_NE(established, nullptr);
    EXPECT_EQ(private_data(*established), answer);
    EXPECT_EQ(established->param.conn.initiator_depth, 1);
  }
  EXPECT_EQ(rdma_get_dst_port(s.server.get()), rdma_get_src_port(s.client.get()));
  // The side that was called speaks first.
  exchange(s.server.get(), s.client.get(), 3);
  exchange(s.client.get(), s.server.get(), 4);
  s.both_end();
  EXPECT_EQ(counted("channel_starts"), 1U);
  EXPECT_EQ(counted("channel_starts_accepted"), 1U);
  EXPECT_EQ(counted("dials"), 0U);
}
TEST_P(CmByUdp, ConnectsWithoutTcp) {
  by_udp(GetParam(), connects_without_tcp);
}

void a_peer_that_is_rejected_hears_why(UdpSides& s) {
  s.listener = s.listen_on(s.passive.get());
  const auto reason = bytes(20, 9);
  {
    const OwnedEvent request = s.ask(UdpSides::port_of(s.listener));
    ASSERT_NE(request, nullptr);
    s.server.reset(request->id);
  }
  ASSERT_OK(rdma_reject(s.server.get(), reason.data(), static_cast<uint8_t>(reason.size())));
  const OwnedEvent rejected = expect_event(s.active.get(), RDMA_CM_EVENT_REJECTED);
  ASSERT_NE(rejected, nullptr);
  EXPECT_EQ(private_data(*rejected), reason);
  EXPECT_EQ(rejected->status, 28);
  EXPECT_EQ(counted("dials"), 0U);
}
TEST_P(CmByUdp, APeerThatIsRejectedHearsWhy) {
  by_udp(GetParam(), a_peer_that_is_rejected_hears_why);
}

// Options are read once: the peer is there first.
void goes_by_tcp_where_the_peer_wants_that() {
  const Other peer{[](UdpSides& there) {
    there.listener = there.listen_on(there.passive.get());
    static std::thread serves{[&there] {
      for (;;) {
        const OwnedEvent e = next_event(there.passive.get());
        if (e == nullptr || e->event != RDMA_CM_EVENT_CONNECT_REQUEST) continue;
        if (create_qp(e->id) == 0) (void)rdma_accept(e->id, nullptr);
      }
    }};
    return UdpSides::port_of(there.listener);
  }};
  setenv("WEFT_RC", "udp", 1);
  UdpSides s;
  for (int i = 0; i < 3; ++i) {
    s.client = s.resolved(s.active.get(), peer.said());
    ASSERT_OK(create_qp(s.client.get()));
    ASSERT_OK(rdma_connect(s.client.get(), nullptr));
    expect_event(s.active.get(), RDMA_CM_EVENT_ESTABLISHED);
  }
  EXPECT_EQ(counted("channel_starts"), 0U);
  EXPECT_EQ(counted("dials"), 3U);
}
TEST_P(CmByUdp, GoesByTcpWhereThePeerWantsThat) {
  const auto run = [] {
    setenv("WEFT_RC", "tcp", 1);
    goes_by_tcp_where_the_peer_wants_that();
    end_of_child();
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(0), "");
}

// Its port is free again.
void nobody_listens(UdpSides& s) {
  s.listener = s.listen_on(s.passive.get());
  const uint16_t port = UdpSides::port_of(s.listener);
  s.listener.reset();
  s.client = s.resolved(s.active.get(), port);
  ASSERT_OK(create_qp(s.client.get()));
  ASSERT_OK(rdma_connect(s.client.get(), nullptr));
  const OwnedEvent rejected = expect_event(s.active.get(), RDMA_CM_EVENT_REJECTED);
  ASSERT_NE(rejected, nullptr);
  EXPECT_EQ(rejected->status, 8);
  EXPECT_EQ(counted("channel_starts"), 0U);
  EXPECT_GE(counted("dials"), 1U);
}
TEST_P(CmByUdp, NobodyListens) {
  by_udp(GetParam(), nobody_listens);
}

void one_that_is_destroyed_waits_no_longer(UdpSides& s) {
  s.listener = s.listen_on(s.passive.get());
  for (int i = 0; i < 50; ++i) {
    const OwnedEvent request = s.ask(UdpSides::port_of(s.listener));
    ASSERT_NE(request, nullptr);
    s.server.reset(request->id);
    ASSERT_OK(create_qp(s.server.get()));
    // Before the answer, beside it, or behind it.
    std::thread other{[&] { s.client.reset(); }};
    if (i % 2 == 0) other.join();
    const int accepted = errno_of(rdma_accept(s.server.get(), nullptr));
    if (other.joinable()) other.join();
    if (accepted == 0) {
      expect_event(s.passive.get(), RDMA_CM_EVENT_ESTABLISHED);
      expect_event(s.passive.get(), RDMA_CM_EVENT_DISCONNECTED);
    } else {
      EXPECT_EQ(accepted, ECONNRESET);
    }
  }
}
TEST_P(CmByUdp, OneThatIsDestroyedWaitsNoLonger) {
  by_udp(GetParam(), one_that_is_destroyed_waits_no_longer);
}

void a_peer_that_was_killed_is_found_out(UdpSides& s) {
  s.listener = s.listen_on(s.passive.get());
  const uint16_t port = UdpSides::port_of(s.listener);
  for (const bool before : {true, false}) {
    // It has to have an adapter of its own: the child's is made there.
    Other peer{[port](UdpSides& there) {
      there.client = there.resolved(there.active.get(), port);
      EXPECT_OK(create_qp(there.client.get()));
      EXPECT_OK(rdma_connect(there.client.get(), nullptr));
      return port;
    }};
    const OwnedEvent request = expect_event(s.passive.get(), RDMA_CM_EVENT_CONNECT_REQUEST);
    ASSERT_NE(request, nullptr);
    s.server.reset(request->id);
    ASSERT_OK(create_qp(s.server.get()));
    if (before) peer.end();
    const int accepted = errno_of(rdma_accept(s.server.get(), nullptr));
    peer.end();
    if (accepted == 0) {
      expect_event(s.passive.get(), RDMA_CM_EVENT_ESTABLISHED);
      expect_event(s.passive.get(), RDMA_CM_EVENT_DISCONNECTED);
    } else {
      EXPECT_EQ(accepted, ECONNRESET);
    }
  }
}
TEST_P(CmByUdp, APeerThatWasKilledIsFoundOut) {
  by_udp(GetParam(), a_peer_that_was_killed_is_found_out);
}

// Whoever asked is not left waiting.
void a_listener_that_goes_refuses_who_waits(UdpSides& s) {
  s.listener = s.listen_on(s.passive.get());
  {
    const OwnedEvent request = s.ask(UdpSides::port_of(s.listener));
    ASSERT_NE(request, nullptr);
    s.server.reset(request->id);
  }
  s.listener.reset();
  ASSERT_OK(create_qp(s.server.get()));
  ASSERT_OK(rdma_accept(s.server.get(), nullptr));
  s.both_established();
  exchange(s.client.get(), s.server.get(), 5);
  s.both_end();
  s.listener = s.listen_on(s.passive.get());
  {
    const OwnedEvent request = s.ask(UdpSides::port_of(s.listener));
    ASSERT_NE(request, nullptr);
    s.server.reset(request->id);
  }
  s.server.reset();
  expect_event(s.active.get(), RDMA_CM_EVENT_REJECTED);
  EXPECT_EQ(counted("dials"), 0U);
}
TEST_P(CmByUdp, AListenerThatGoesRefusesWhoWaits) {
  by_udp(GetParam(), a_listener_that_goes_refuses_who_waits);
}

void one_that_accepts_and_goes_is_heard(UdpSides& s) {
  s.listener = s.listen_on(s.passive.get());
  for (int i = 0; i < 50; ++i) {
    const OwnedEvent request = s.ask(UdpSides::port_of(s.listener));
    ASSERT_NE(request, nullptr);
    s.server.reset(request->id);
    ASSERT_OK(create_qp(s.server.get()));
    ASSERT_OK(rdma_accept(s.server.get(), nullptr));
    expect_event(s.passive.get(), RDMA_CM_EVENT_ESTABLISHED);
    s.server.reset();
    expect_event(s.active.get(), RDMA_CM_EVENT_ESTABLISHED);
    expect_event(s.active.get(), RDMA_CM_EVENT_DISCONNECTED);
  }
}
TEST_P(CmByUdp, OneThatAcceptsAndGoesIsHeard) {
  by_udp(GetParam(), one_that_accepts_and_goes_is_heard);
}

// Queue pairs that the program makes by itself, on whichever engine.
void accepts_with_the_programs_queue_pair(UdpSides& s) {
  s.listener = s.listen_on(s.passive.get());
  ibv_pd* pd = nullptr;
  ibv_cq* cq = nullptr;
  for (unsigned i = 0; i < 4; ++i) {
    const OwnedEvent request = s.ask(UdpSides::port_of(s.listener));
    ASSERT_NE(request, nullptr);
    s.server.reset(request->id);
    if (pd == nullptr) {
      pd = ibv_alloc_pd(request->id->verbs);
      cq = ibv_create_cq(request->id->verbs, 64, nullptr, nullptr, 0);
    }
    ibv_qp_init_attr a = qp_attributes();
    a.send_cq = a.recv_cq = cq;
    ibv_qp* const qp = ibv_create_qp(pd, &a);
    ASSERT_NE(qp, nullptr);
    for (const ibv_qp_state state : {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS}) {
      ibv_qp_attr attributes{};
      attributes.qp_state = state;
      int mask = 0;
      ASSERT_OK(rdma_init_qp_attr(s.server.get(), &attributes, &mask));
      ASSERT_OK(ibv_modify_qp(qp, &attributes, mask));
    }
    rdma_conn_param p = parameters();
    p.qp_num = qp->qp_num;
    ASSERT_OK(rdma_accept(s.server.get(), &p));
    s.both_established();
    auto out = bytes(1000, i);
    std::vector<uint8_t> in(1000);
    ibv_mr* const to = rdma_reg_msgs(s.client.get(), in.data(), in.size());
    ibv_mr* const from = ibv_reg_mr(pd, out.data(), out.size(), 0);
    ASSERT_OK(rdma_post_recv(s.client.get(), nullptr, in.data(), in.size(), to));
    ibv_sge sge{reinterpret_cast<uintptr_t>(out.data()), 1000, from->lkey};
    ibv_send_wr wr{};
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_SEND;
    ibv_send_wr* bad = nullptr;
    ASSERT_EQ(ibv_post_send(qp, &wr, &bad), 0);
    ibv_wc wc{};
    ASSERT_EQ(rdma_get_recv_comp(s.client.get(), &wc), 1);
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    EXPECT_EQ(in, out);
    s.both_end();
    EXPECT_EQ(rdma_dereg_mr(to), 0);
    EXPECT_EQ(ibv_dereg_mr(from), 0);
    EXPECT_EQ(ibv_destroy_qp(qp), 0);
  }
  EXPECT_EQ(counted("dials"), 0U);
}
TEST_P(CmByUdp, AcceptsWithTheProgramsQueuePair) {
  by_udp(GetParam(), accepts_with_the_programs_queue_pair);
}

// More than a socket has queue pairs at a time, and by far more than it has in all.
void three_thousand_one_after_the_other(UdpSides& s) {
  s.listener = s.listen_on(s.passive.get());
  size_t most = 0;
  for (unsigned i = 0; i < 3000 && !testing::Test::HasFailure(); ++i) {
    {
      const OwnedEvent request = s.ask(UdpSides::port_of(s.listener));
      ASSERT_NE(request, nullptr);
      s.server.reset(request->id);
    }
    ASSERT_OK(create_qp(s.server.get()));
    ASSERT_OK(rdma_accept(s.server.get(), nullptr));
    s.both_established();
    if (i % 100 == 0) exchange(s.server.get(), s.client.get(), i);
    s.both_end();
    s.client.reset();
    s.server.reset();
    most = std::max(most, entries("/proc/self/fd"));
  }
  EXPECT_EQ(counted("channel_starts_accepted"), 3000U);
  EXPECT_EQ(counted("dials"), 0U);
}
TEST_P(CmByUdp, ThreeThousandOneAfterTheOther) {
  by_udp(GetParam(), three_thousand_one_after_the_other);
}

// Programs that are slow have them wait.
void many_at_once_wait_for_the_program(UdpSides& s) {
  raise_descriptor_limit();
  s.listener = s.listen_on(s.passive.get(), 1);
  constexpr size_t kMany = 300;
  std::vector<OwnedId> clients;
  for (size_t i = 0; i < kMany; ++i) {
    clients.push_back(s.resolved(s.active.get(), UdpSides::port_of(s.listener)));
    ASSERT_OK(create_qp(clients.back().get()));
    ASSERT_OK(rdma_connect(clients.back().get(), nullptr));
  }
  std::vector<OwnedId> servers;
  for (size_t established = 0; established < 2 * kMany;) {
    while (servers.size() < kMany && !quiet_for(s.passive.get(), 0)) {
      const OwnedEvent e = next_event(s.passive.get());
      ASSERT_NE(e, nullptr);
      if (e->event == RDMA_CM_EVENT_ESTABLISHED) {
        ++established;
        continue;
      }
      ASSERT_EQ(e->event, RDMA_CM_EVENT_CONNECT_REQUEST);
      servers.emplace_back(e->id);
      ASSERT_OK(create_qp(e->id));
      ASSERT_OK(rdma_accept(e->id, nullptr));
    }
    if (servers.size() == kMany) {
      while (established < 2 * kMany) {
        auto* const from = quiet_for(s.passive.get(), 0) ? s.active.get() : s.passive.get();
        const OwnedEvent e = next_event(from);
        ASSERT_NE(e, nullptr);
        ASSERT_EQ(e->event, RDMA_CM_EVENT_ESTABLISHED);
        ++established;
      }
    }
  }
  EXPECT_EQ(counted("channel_starts_accepted"), kMany);
  EXPECT_EQ(counted("dials"), 0U);
}
TEST_P(CmByUdp, ManyAtOnceWaitForTheProgram) {
  by_udp(GetParam(), many_at_once_wait_for_the_program);
}

void connects_by_ipv6(UdpSides& s) {
  s.listener = s.make_id(s.passive.get());
  sockaddr_in6 at{};
  at.sin6_family = AF_INET6;
  at.sin6_addr = in6addr_any;
  ASSERT_OK(rdma_bind_addr(s.listener.get(), any_of(at)));
  ASSERT_OK(rdma_listen(s.listener.get(), 0));
  at.sin6_addr = in6addr_loopback;
  at.sin6_port = rdma_get_src_port(s.listener.get());
  s.client = s.make_id(s.active.get());
  ASSERT_OK(rdma_resolve_addr(s.client.get(), nullptr, any_of(at), 2000));
  expect_event(s.active.get(), RDMA_CM_EVENT_ADDR_RESOLVED);
  ASSERT_OK(rdma_resolve_route(s.client.get(), 2000));
  expect_event(s.active.get(), RDMA_CM_EVENT_ROUTE_RESOLVED);
  ASSERT_OK(create_qp(s.client.get()));
  ASSERT_OK(rdma_connect(s.client.get(), nullptr));
  {
    const OwnedEvent request = expect_event(s.passive.get(), RDMA_CM_EVENT_CONNECT_REQUEST);
    ASSERT_NE(request, nullptr);
    s.server.reset(request->id);
  }
  ASSERT_OK(create_qp(s.server.get()));
  ASSERT_OK(rdma_accept(s.server.get(), nullptr));
  s.both_established();
  exchange(s.server.get(), s.client.get(), 3);
  EXPECT_EQ(counted("dials"), 0U);
}
TEST_P(CmByUdp, ConnectsByIpv6) {
  by_udp(GetParam(), connects_by_ipv6);
}

}  // namespace
}  // namespace weft::test
