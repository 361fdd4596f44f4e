// Ids: addresses, options and what belongs to them, without a connection.
#include "base/rdma_option.h"
#include "tests/abi/cm_child.h"
#include "tests/abi/cm_fixture.h"
#include "tests/abi/in_child.h"
#include "tests/verbs/own_network.h"

namespace weft::test {
namespace {

using CmId = CmTest;

TEST_F(CmId, PortIsTheSystemsChoiceWhereTheProgramMakesNone) {
  const OwnedId id = make_id(active.get());
  sockaddr_in at = loopback();
  ASSERT_OK(rdma_bind_addr(id.get(), any_of(at)));
  EXPECT_NE(rdma_get_src_port(id.get()), 0);
  EXPECT_ERRNO(EINVAL, rdma_bind_addr(id.get(), any_of(at))) << "twice";
}

// Another thread may have been inside the refusal, and is not there to come out of it.
TEST_F(CmId, AChildOfForkIsRefusedAsWell) {
  const OwnedId id = make_id(active.get());
  EXPECT_EQ(in_children_beside([&] {
              sockaddr local{};
              local.sa_family = AF_UNIX;
              (void)rdma_bind_addr(id.get(), &local);
            }),
            0);
}

// Whether GID 0 of the device is a loopback address of IPv4.
bool device_is_on_loopback() {
  ibv_context** devices = rdma_get_devices(nullptr);
  ibv_gid gid{};
  const bool found = devices != nullptr && ibv_query_gid(devices[0], 1, 0, &gid) == 0;
  rdma_free_devices(devices);
  return found && gid.raw[11] == 0xff && gid.raw[12] == 127;
}

// The kernel's rdma_cm does so, and libfabric tells peers the address that it finds on a device.
TEST_F(CmId, LoopbackIsOnNoDeviceThatHasAnotherAddress) {
  if (device_is_on_loopback()) GTEST_SKIP() << "no IPv4 address on this host but that of loopback";
  const OwnedId id = make_id(active.get());
  sockaddr_in at = loopback();
  ASSERT_OK(rdma_bind_addr(id.get(), any_of(at)));
  EXPECT_EQ(id->verbs, nullptr);
  sockaddr_in to = loopback(9);
  ASSERT_OK(rdma_resolve_addr(id.get(), nullptr, any_of(to), 1000));
  expect_event(active.get(), RDMA_CM_EVENT_ADDR_RESOLVED);
  EXPECT_NE(id->verbs, nullptr) << "towards a peer it is";
}

// In the process of a death test.
void check(bool good, const char* what) {
  if (!good) throw std::runtime_error(what);
}
OwnedId id_of(const OwnedChannel& channel) {
  rdma_cm_id* made = nullptr;
  check(channel != nullptr && rdma_create_id(channel.get(), &made, nullptr, RDMA_PS_TCP) == 0,
        "no id");
  return OwnedId{made};
}

// As siw of the kernel, on `lo`: programs bind 127.0.0.1, look for the device, and find it.
void expect_device_on_loopback() {
  const OwnedChannel channel{rdma_create_event_channel()};
  const OwnedId id = id_of(channel);
  sockaddr_in at = loopback();
  check(rdma_bind_addr(id.get(), any_of(at)) == 0, "rdma_bind_addr");
  check(id->verbs != nullptr && id->pd != nullptr && id->port_num == 1, "no device");
  check(rdma_listen(id.get(), 1) == 0, "rdma_listen");
  sockaddr_in wildcard{};
  wildcard.sin_family = AF_INET;
  const OwnedId any = id_of(channel);
  check(rdma_bind_addr(any.get(), any_of(wildcard)) == 0, "rdma_bind_addr");
  check(any->verbs == nullptr, "a wildcard is on no device");
}

TEST(CmLoopback, IsOnTheDeviceWhereItIsTheFirstAddress) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(with({{"WEFT_IP", "127.0.0.1"}}, expect_device_on_loopback),
              testing::ExitedWithCode(0), "");
}

TEST(CmLoopback, IsOnTheDeviceWhereThereIsNoOtherAddress) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  bool here = true;
  EXPECT_EXIT(in_own_network("ip link set lo up", {}, expect_device_on_loopback), EndsWell{here},
              "");
  if (!here) GTEST_SKIP() << "no network of its own can be made here";
}

// On InfiniBand a server listens on one number by TCP and by rdma_cm.
TEST(CmPort, ThatASocketOfThisProcessHasIsRefusedWithASentence) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto bind_both = [](bool by_udp) {
    const int own = socket(AF_INET, by_udp ? SOCK_DGRAM : SOCK_STREAM, 0);
    sockaddr_in at = loopback();
    socklen_t size = sizeof at;
    if (bind(own, any_of(at), size) != 0 || getsockname(own, any_of(at), &size) != 0) _exit(2);
    if (!by_udp && listen(own, 1) != 0) _exit(3);
    const OwnedChannel channel{rdma_create_event_channel()};
    rdma_cm_id* id = nullptr;
    if (rdma_create_id(channel.get(), &id, nullptr, by_udp ? RDMA_PS_UDP : RDMA_PS_TCP) != 0) {
      _exit(4);
    }
    _exit(rdma_bind_addr(id, any_of(at)) == -1 && errno == EADDRINUSE ? 0 : 5);
  };
  EXPECT_EXIT(bind_both(false), testing::ExitedWithCode(0),
              "TCP port [0-9]+ is taken, by a socket of this process .descriptor [0-9]+.");
  EXPECT_EXIT(bind_both(true), testing::ExitedWithCode(0), "UDP port [0-9]+ is taken");
}

// A listener is found by TCP, for RC, and by UDP, for UC. Another process holds all numbers on UDP
// but two, and none on TCP: one is left for the device, the other for the listener.
TEST(CmPort, TheSystemsChoiceIsFreeOnTcpAndUdp) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  constexpr uint16_t kFirst = 40000;
  constexpr uint16_t kFree = 40028;
  bool here = true;
  const auto listen_beside = [] {
    const Child other([](int ready) {
      for (uint16_t port = kFirst; port < kFree; ++port) {
        sockaddr_in at = loopback(port);
        at.sin_addr.s_addr = htonl(INADDR_ANY);
        if (bind(socket(AF_INET, SOCK_DGRAM, 0), any_of(at), sizeof at) != 0) _exit(2);
      }
      tell(ready);
    });
    other.await();
    const OwnedChannel channel{rdma_create_event_channel()};
    const OwnedId id = id_of(channel);
    sockaddr_in at = loopback();
    check(rdma_bind_addr(id.get(), any_of(at)) == 0, "rdma_bind_addr");
    check(rdma_listen(id.get(), 1) == 0, "rdma_listen");
    const uint16_t port = ntohs(rdma_get_src_port(id.get()));
    check(port >= kFree, "a number that another process has on UDP");
    sockaddr_in same = loopback(port);
    check(errno_of(bind(socket(AF_INET, SOCK_DGRAM, 0), any_of(same), sizeof same)) == EADDRINUSE,
          "the listener has no UDP");
  };
  EXPECT_EXIT(in_own_network("ip link set lo up && "
                             "echo 40000 40029 >/proc/sys/net/ipv4/ip_local_port_range",
                             {{"WEFT_ENGINES", "1"}}, listen_beside),
              EndsWell{here}, "");
  if (!here) GTEST_SKIP() << "no network of its own can be made here";
}

TEST_F(CmId, AnAddressThatOthersReachIsOnTheDevice) {
  ibv_context** devices = rdma_get_devices(nullptr);
  ASSERT_NE(devices, nullptr);
  ibv_gid gid{};
  const int found = ibv_query_gid(devices[0], 1, 0, &gid);
  rdma_free_devices(devices);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  std::memcpy(&at.sin_addr, gid.raw + 12, 4);
  if (found != 0 || gid.raw[11] != 0xff || gid.raw[12] == 127) {
    GTEST_SKIP() << "no IPv4 address on this host but that of loopback";
  }
  const OwnedId id = make_id(active.get());
  ASSERT_OK(rdma_bind_addr(id.get(), any_of(at)));
  EXPECT_NE(id->verbs, nullptr);
}

TEST_F(CmId, AddressThatIsInUse) {
  const OwnedId first = listen_on(active.get());
  const OwnedId second = make_id(active.get());
  sockaddr_in at = loopback(port_of(first));
  EXPECT_ERRNO(EADDRINUSE, rdma_bind_addr(second.get(), any_of(at)));
}

TEST_F(CmId, AddressOfAnotherHost) {
  const OwnedId id = make_id(active.get());
  sockaddr_in at{};
  at.sin_family = AF_INET;
  ASSERT_EQ(inet_pton(AF_INET, "198.51.100.77", &at.sin_addr), 1);
  EXPECT_ERRNO(EADDRNOTAVAIL, rdma_bind_addr(id.get(), any_of(at)));
  sockaddr_in to = loopback(9);
  EXPECT_ERRNO(EADDRNOTAVAIL, rdma_resolve_addr(id.get(), any_of(at), any_of(to), 1000));
}

TEST_F(CmId, FamiliesThatDoNotExist) {
  const OwnedId id = make_id(active.get());
  sockaddr_in at = loopback();
  at.sin_family = AF_IB;
  EXPECT_ERRNO(EINVAL, rdma_bind_addr(id.get(), any_of(at)));
  EXPECT_ERRNO(EINVAL, rdma_resolve_addr(id.get(), nullptr, any_of(at), 1000));
  EXPECT_ERRNO(EINVAL, rdma_resolve_addr(id.get(), nullptr, nullptr, 1000));
  sockaddr_in6 six{};
  six.sin6_family = AF_INET6;
  six.sin6_addr = in6addr_loopback;
  sockaddr_in four = loopback();
  EXPECT_ERRNO(EINVAL, rdma_resolve_addr(id.get(), any_of(four), any_of(six), 1000));
}

TEST_F(CmId, UnreachableAddressIsAnEvent) {
  const OwnedId id = make_id(active.get());
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(9);
  to.sin_addr.s_addr = htonl(INADDR_BROADCAST);
  ASSERT_OK(rdma_resolve_addr(id.get(), nullptr, any_of(to), 1000));
  const OwnedEvent e = expect_event(active.get(), RDMA_CM_EVENT_ADDR_ERROR);
  ASSERT_NE(e, nullptr);
  EXPECT_LT(e->status, 0);
  to = loopback(9);
  EXPECT_OK(rdma_resolve_addr(id.get(), nullptr, any_of(to), 1000)) << "may be tried again";
  expect_event(active.get(), RDMA_CM_EVENT_ADDR_RESOLVED);
}

TEST_F(CmId, SourceAddressIsTheRoutes) {
  const OwnedId id = make_id(active.get());
  sockaddr_in to = loopback(9);
  ASSERT_OK(rdma_resolve_addr(id.get(), nullptr, any_of(to), 1000));
  EXPECT_EQ(id->verbs, nullptr) << "before the event";
  expect_event(active.get(), RDMA_CM_EVENT_ADDR_RESOLVED);
  EXPECT_NE(id->verbs, nullptr);
  EXPECT_NE(id->pd, nullptr);
  EXPECT_EQ(id->route.addr.src_sin.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
  EXPECT_EQ(id->route.num_paths, 0);
  ASSERT_OK(rdma_resolve_route(id.get(), 1000));
  expect_event(active.get(), RDMA_CM_EVENT_ROUTE_RESOLVED);
  ASSERT_EQ(id->route.num_paths, 1);
  EXPECT_EQ(memcmp(&id->route.path_rec->dgid, &id->route.addr.addr.ibaddr.dgid, 16), 0);
}

TEST_F(CmId, GivenSourceAddressIsKept) {
  const OwnedId id = make_id(active.get());
  sockaddr_in from = loopback();
  from.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1);
  sockaddr_in to = loopback(9);
  ASSERT_OK(rdma_resolve_addr(id.get(), any_of(from), any_of(to), 1000));
  expect_event(active.get(), RDMA_CM_EVENT_ADDR_RESOLVED);
  EXPECT_EQ(id->route.addr.src_sin.sin_addr.s_addr, htonl(INADDR_LOOPBACK + 1));
}

TEST_F(CmId, ThePortSpaceOfInfiniBandItselfIsNotThere) {
  rdma_cm_id* id = nullptr;
  EXPECT_ERRNO(EOPNOTSUPP, rdma_create_id(nullptr, &id, nullptr, RDMA_PS_IB));
}

TEST_F(CmId, NorIsOneThatNobodyKnows) {
  rdma_cm_id* id = nullptr;
  for (const int space : {0, 1, 0x999}) {
    EXPECT_ERRNO(EINVAL,
                 rdma_create_id(active.get(), &id, nullptr, static_cast<rdma_port_space>(space)));
  }
}

TEST_F(CmId, ContextIsTheProgramsOwn) {
  listener = listen_on(passive.get());
  EXPECT_EQ(listener->context, this);
  client = resolved(active.get(), port_of(listener));
  ASSERT_OK(create_qp(client.get()));
  ASSERT_OK(rdma_connect(client.get(), nullptr));
  const OwnedEvent request = expect_event(passive.get(), RDMA_CM_EVENT_CONNECT_REQUEST);
  ASSERT_NE(request, nullptr);
  server.reset(request->id);
  EXPECT_EQ(request->listen_id, listener.get());
  EXPECT_EQ(server->context, listener->context) << "inherited";
  EXPECT_EQ(server->channel, passive.get());
  EXPECT_EQ(server->ps, RDMA_PS_TCP);
  EXPECT_EQ(server->qp_type, IBV_QPT_RC);
}

// --- options

TEST_F(CmId, Options) {
  const OwnedId id = make_id(active.get());
  uint8_t byte = 0x20;
  int on = 1;
  EXPECT_OK(rdma_set_option(id.get(), RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &byte, sizeof byte));
  EXPECT_OK(
      rdma_set_option(id.get(), RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &byte, sizeof byte));
  EXPECT_OK(rdma_set_option(id.get(), RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &on, sizeof on));
  EXPECT_OK(rdma_set_option(id.get(), RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &on, sizeof on));
  EXPECT_ERRNO(EINVAL,
               rdma_set_option(id.get(), RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &on, sizeof on));
  EXPECT_ERRNO(ENOSYS, rdma_set_option(id.get(), RDMA_OPTION_ID, 77, &on, sizeof on));
  EXPECT_ERRNO(ENOSYS, rdma_set_option(id.get(), 77, 0, &on, sizeof on));
  EXPECT_OK(rdma_set_option(id.get(), kWeftOptionLevel, kOptionAsksAgain, &on, sizeof on));
  EXPECT_ERRNO(EINVAL,
               rdma_set_option(id.get(), kWeftOptionLevel, kOptionAsksAgain, &byte, sizeof byte));
  EXPECT_OK(rdma_set_option(id.get(), kWeftOptionLevel, kOptionOnlyRc, &on, sizeof on));
  Keepalive keepalive;
  EXPECT_OK(
      rdma_set_option(id.get(), kWeftOptionLevel, kOptionKeepalive, &keepalive, sizeof keepalive));
  keepalive.count = 0;
  EXPECT_ERRNO(EINVAL, rdma_set_option(id.get(), kWeftOptionLevel, kOptionKeepalive, &keepalive,
                                       sizeof keepalive));
  EXPECT_ERRNO(EINVAL,
               rdma_set_option(id.get(), kWeftOptionLevel, kOptionKeepalive, &on, sizeof on));
  EXPECT_ERRNO(ENOSYS, rdma_set_option(id.get(), kWeftOptionLevel, 77, &on, sizeof on));
}

TEST_F(CmId, OneFamilyLeavesThePortToTheOther) {
  const auto port_of_both = [&] {
    const OwnedId six = make_id(active.get());
    int on = 1;
    EXPECT_OK(rdma_set_option(six.get(), RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &on, sizeof on));
    sockaddr_in6 at{};
    at.sin6_family = AF_INET6;
    EXPECT_OK(rdma_bind_addr(six.get(), any_of(at)));
    EXPECT_OK(rdma_listen(six.get(), 1));
    const OwnedId four = make_id(active.get());
    sockaddr_in any{};
    any.sin_family = AF_INET;
    any.sin_port = rdma_get_src_port(six.get());
    return rdma_bind_addr(four.get(), any_of(any)) == 0 && rdma_listen(four.get(), 1) == 0;
  };
  // Somebody else on this machine may have the port in the other family.
  bool found = false;
  for (int i = 0; i < 20 && !found; ++i) found = port_of_both();
  EXPECT_TRUE(found);
}

TEST_F(CmId, PathsResolveTheRoute) {
  const OwnedId id = make_id(active.get());
  sockaddr_in to = loopback(9);
  ASSERT_OK(rdma_resolve_addr(id.get(), nullptr, any_of(to), 1000));
  expect_event(active.get(), RDMA_CM_EVENT_ADDR_RESOLVED);
  ibv_path_data path{};
  EXPECT_ERRNO(EINVAL, rdma_set_option(id.get(), RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, &path, 3));
  ASSERT_OK(rdma_set_option(id.get(), RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, &path, sizeof path));
  expect_event(active.get(), RDMA_CM_EVENT_ROUTE_RESOLVED);
}

// --- the device

TEST_F(CmId, DevicesAreThoseOfTheIds) {
  int count = 0;
  ibv_context** list = rdma_get_devices(&count);
  ASSERT_NE(list, nullptr);
  ASSERT_EQ(count, 1);
  EXPECT_EQ(list[1], nullptr);
  EXPECT_EQ(resolved(active.get(), 9)->verbs, list[0]);
  rdma_free_devices(list);
}

TEST_F(CmId, QueuePairWithWhatTheLibraryProvides) {
  client = resolved(active.get(), 9);
  ibv_qp_init_attr a = qp_attributes();
  ASSERT_OK(rdma_create_qp(client.get(), nullptr, &a));
  EXPECT_EQ(client->qp->pd, client->pd);
  EXPECT_EQ(client->qp->send_cq, client->send_cq);
  EXPECT_EQ(client->qp->recv_cq, client->recv_cq);
  EXPECT_NE(client->send_cq_channel, nullptr);
  EXPECT_NE(client->recv_cq_channel, nullptr);
  EXPECT_GE(a.cap.max_inline_data, 64U) << "what was granted";
  EXPECT_ERRNO(EINVAL, rdma_create_qp(client.get(), nullptr, &a)) << "twice";
  rdma_destroy_qp(client.get());
  EXPECT_EQ(client->qp, nullptr);
  EXPECT_EQ(client->send_cq, nullptr);
}

TEST_F(CmId, SharedReceiveQueueOfAnId) {
  client = resolved(active.get(), 9);
  ibv_srq_init_attr attr{};
  attr.attr.max_wr = 4;
  attr.attr.max_sge = 1;
  ASSERT_OK(rdma_create_srq(client.get(), nullptr, &attr));
  ASSERT_NE(client->srq, nullptr);
  ASSERT_OK(create_qp(client.get()));
  EXPECT_EQ(client->qp->srq, client->srq);
  rdma_destroy_qp(client.get());
  rdma_destroy_srq(client.get());
  EXPECT_EQ(client->srq, nullptr);
}

// --- what is not there says so

TEST_F(CmId, ConnectionsJoinNoGroups) {
  const OwnedId id = make_id(active.get());
  sockaddr_in group = loopback();
  EXPECT_ERRNO(EINVAL, rdma_join_multicast(id.get(), any_of(group), nullptr));
  EXPECT_ERRNO(EINVAL, rdma_join_multicast(id.get(), nullptr, nullptr));
  EXPECT_ERRNO(EADDRNOTAVAIL, rdma_leave_multicast(id.get(), any_of(group)));
}

TEST_F(CmId, EnhancedConnectionEstablishmentIsNobodys) {
  const OwnedId id = make_id(active.get());
  ibv_ece ece{.vendor_id = 0x15b3, .options = 1, .comp_mask = 0};
  EXPECT_OK(rdma_set_local_ece(id.get(), &ece));
  EXPECT_OK(rdma_get_remote_ece(id.get(), &ece));
  EXPECT_EQ(ece.vendor_id, 0U);
  ece = {};
  EXPECT_ERRNO(EINVAL, rdma_set_local_ece(id.get(), &ece));
}

}  // namespace
}  // namespace weft::test
