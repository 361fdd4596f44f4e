// UC, UD and groups once more where the first GID is of IPv6: that of the loopback, and a
// link-local one, which needs its interface with it.

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include "tests/support/two_hosts.h"
#include "tests/verbs/peer_process.h"

namespace weft::test {
namespace {

// But for the test whose destination is of IPv4, which no GID of IPv6 leads to.
constexpr const char* kTheSame =
    "--gtest_filter=UnreliableConnection.*:UnreliableDatagram.*:TrafficClass.*"
    "-UnreliableDatagram.what_the_kernel_refuses_to_send_is_lost_and_counted";
// And but for those with bare sockets, which know no scope.
constexpr const char* kTheSameAndGroups =
    "--gtest_filter=UnreliableConnection.*:UnreliableDatagram.*:Multicast.*"
    "-UnreliableDatagram.an_answer_goes_to_the_port_that_the_datagram_came_from"
    ":UnreliableDatagram.what_the_kernel_refuses_to_send_is_lost_and_counted";

// This program's status with that GID first.
int run_with_ip(const char* ip, const char* filter) {
  const pid_t child = fork();
  if (child == 0) {
    setenv("WEFT_IP", ip, 1);
    execl("/proc/self/exe", "verbs_tests", filter, "--gtest_brief=1", nullptr);
    _exit(127);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

bool has_loopback() {
  const int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_in6 at{};
  at.sin6_family = AF_INET6;
  at.sin6_addr = in6addr_loopback;
  const bool has = fd >= 0 && bind(fd, reinterpret_cast<sockaddr*>(&at), sizeof at) == 0;
  if (fd >= 0) close(fd);
  return has;
}

// But for groups: Linux has no way for those from ::1.
TEST(Ipv6, the_same_holds_on_the_loopback) {
  if (!has_loopback()) GTEST_SKIP() << "no ::1 on this host";
  EXPECT_EQ(run_with_ip("::1", kTheSame), 0);
}

TEST(Ipv6, the_same_holds_with_a_link_local_address) {
  const int result = run_apart([] {
    const TwoHosts hosts;
    if (!hosts.made()) return kNotHere;
    return run_with_ip("fe80::1%wire", kTheSameAndGroups);
  });
  if (result == kNotHere) GTEST_SKIP() << "no network namespaces with IPv6 can be made here";
  EXPECT_EQ(result, 0);
}

// --- between two hosts

struct Family {
  const char* name;
  const char* near;
  const char* far;
};
constexpr Family kIpv4{"ipv4", "192.0.2.1", "192.0.2.2"};
constexpr Family kIpv6{"ipv6_of_the_link", "fe80::1%wire", "fe80::2%wire"};

ibv_gid gid_of(const std::string& address) {
  const std::string bare = address.substr(0, address.find('%'));
  ibv_gid gid{};
  if (inet_pton(AF_INET6, bare.c_str(), gid.raw) != 1) {
    gid.raw[10] = gid.raw[11] = 0xff;
    check(inet_pton(AF_INET, bare.c_str(), &gid.raw[12]) == 1, "an address");
  }
  return gid;
}

int index_of(const Adapter& a, const ibv_gid& wanted) {
  ibv_gid gid{};
  for (int i = 0; ibv_query_gid(a.context.get(), 1, i, &gid) == 0; ++i) {
    if (std::memcmp(&gid, &wanted, sizeof gid) == 0) return i;
  }
  throw std::runtime_error("the GID table lacks an address");
}

// A UD queue pair in a process of its own, which tells the length of each message that comes.
class FarMailbox {
 public:
  FarMailbox() {
    check(pipe(ends_) == 0, "pipe");
    pid_ = fork();
    check(pid_ >= 0, "fork");
    if (pid_ == 0) {
      try {
        live();
      } catch (const std::exception& e) {
        (void)!write(STDERR_FILENO, e.what(), std::strlen(e.what()));
      }
      _exit(1);
    }
    close(ends_[1]);
  }
  ~FarMailbox() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    close(ends_[0]);
  }
  FarMailbox(const FarMailbox&) = delete;
  FarMailbox& operator=(const FarMailbox&) = delete;
  // First its number, then what comes.
  uint32_t next() const {
    uint32_t n = 0;
    check(read(ends_[0], &n, sizeof n) == sizeof n, "a word of the far side's");
    return n;
  }

 private:
  static constexpr size_t kRoom = 4096;

  void live() {
    const Adapter a;
    std::vector<uint8_t> memory(32 * kRoom);
    const MrPtr mr = a.reg(memory.data(), memory.size());
    const CqPtr cq = a.cq(64);
    const QpPtr qp = make_qp(a, cq.get(), {.type = IBV_QPT_UD});
    to_rtr(qp.get(), 0, {});
    to_rts(qp.get());
    for (size_t i = 0; i < 32; ++i) {
      check_errno(post_recv(qp.get(), i, {sge(&memory[i * kRoom], kRoom, mr.get())}), "receive");
    }
    tell(qp->qp_num);
    for (;;) {
      for (const ibv_wc& wc : collect(cq.get(), 1)) tell(wc.byte_len - 40);
    }
  }
  void tell(uint32_t n) const { check(write(ends_[1], &n, sizeof n) == sizeof n, "pipe"); }
  int ends_[2]{};
  pid_t pid_ = -1;
};

// The first GID is of IPv4 in either case: the room is that of the address handle's way.
int datagrams(const Family& family) {
  constexpr size_t kLongest = 2048;  // the MTU of InfiniBand's that packets of 2200 bytes carry
  const TwoHosts hosts;
  if (!hosts.made()) return kNotHere;
  check(hosts.set_mtu(2200), "the wire's MTU");
  check(hosts.enter_far(), "setns");
  const FarMailbox far;
  const uint32_t number = far.next();
  check(hosts.enter_near(), "setns");
  const Adapter a;
  std::vector<uint8_t> memory(4096);
  const MrPtr mr = a.reg(memory.data(), memory.size());
  const CqPtr cq = a.cq(16);
  const QpPtr qp = make_qp(a, cq.get(), {.type = IBV_QPT_UD});
  to_rtr(qp.get(), 0, {});
  to_rts(qp.get());
  ibv_ah_attr attr{};
  attr.is_global = 1;
  attr.port_num = 1;
  attr.grh.sgid_index = static_cast<uint8_t>(index_of(a, gid_of(family.near)));
  attr.grh.dgid = gid_of(family.far);
  ibv_ah* ah = ibv_create_ah(a.pd.get(), &attr);
  check(ah != nullptr, "ibv_create_ah");
  const auto send = [&](size_t n) {
    ibv_send_wr wr{};
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.ud = {.ah = ah, .remote_qpn = number, .remote_qkey = kQKey};
    check_errno(post_send(qp.get(), wr, {sge(memory.data(), n, mr.get())}), "post_send");
    const auto done = collect(cq.get(), 1);
    check(done.size() == 1, "a completion");
    return done[0].status;
  };
  check(send(kLongest) == IBV_WC_SUCCESS, "the longest message is sent");
  check(far.next() == kLongest, "it comes");
  // EMSGSIZE: the link has become narrower since. Such a message is lost as others are, or goes in
  // parts where none may be lost.
  check(hosts.set_mtu(1400), "the wire becomes narrower");
  check(send(kLongest) == IBV_WC_SUCCESS && send(100) == IBV_WC_SUCCESS, "both are sent");
  const char* const ud = std::getenv("WEFT_UD");
  if (ud != nullptr && std::string_view{ud} == "reliable") {
    check(far.next() == kLongest, "the long one comes all the same");
  }
  check(far.next() == 100, "the short one comes");
  check(send(kLongest + 1) == IBV_WC_LOC_LEN_ERR, "one byte more is an error");
  ibv_destroy_ah(ah);
  return 0;
}

// EMSGSIZE tells UC of a link that has become narrower: what was under way is lost, what comes
// later is cut as it has to be.
int connections(const Family& family) {
  constexpr size_t kLength = 200'000;
  constexpr QpOptions kUc{.type = IBV_QPT_UC};
  const TwoHosts hosts;
  if (!hosts.made()) return kNotHere;
  check(hosts.enter_far(), "setns");
  setenv("WEFT_IP", family.far, 1);
  PeerProcess peer([](ibv_qp*, const ibv_mr*) {}, kUc);
  check(hosts.enter_near(), "setns");
  setenv("WEFT_IP", family.near, 1);
  const Adapter a;
  std::vector<uint8_t> out(kLength);
  std::vector<uint8_t> in(kLength);
  const MrPtr out_mr = a.reg(out.data(), out.size());
  const MrPtr in_mr = a.reg(in.data(), in.size());
  const CqPtr cq = a.cq(16);
  const QpPtr qp = make_qp(a, cq.get(), kUc);
  check(index_of(a, gid_of(family.near)) == 0, "WEFT_IP");
  const PeerCard card = peer.connect_to(qp.get(), own_gid(a), kUc);
  const auto write_and_read = [&](size_t round) {
    for (size_t i = 0; i < kLength; ++i) {
      out[i] = static_cast<uint8_t>(round * 37 + i * 7 + (i >> 8) * 3 + 1);
    }
    for (const bool read : {false, true}) {
      ibv_send_wr wr{};
      wr.opcode = read ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE;
      wr.send_flags = IBV_SEND_SIGNALED;
      wr.wr.rdma = {card.address, card.rkey};
      check_errno(post_send(qp.get(), wr,
                            {read ? sge(in.data(), kLength, in_mr.get())
                                  : sge(out.data(), kLength, out_mr.get())}),
                  "post_send");
    }
    const auto done = collect(cq.get(), 2);
    check(done.size() == 2 && done[0].status == IBV_WC_SUCCESS, "both complete");
    return done[1].status == IBV_WC_SUCCESS && in == out;
  };
  for (size_t round = 0; round < 10; ++round) check(write_and_read(round), "what was written");
  check(hosts.set_mtu(1400), "the wire becomes narrower");
  // Some are lost until it is known what the link carries, and none that comes later.
  size_t round = 10;
  while (!write_and_read(round)) check(++round < 20, "a Write arrives again");
  for (const size_t end = round + 10; ++round < end;) {
    check(write_and_read(round), "what was written later");
  }
  return 0;
}

class TwoHostsTest : public testing::TestWithParam<Family> {
 protected:
  static void expect_good(int (*talk)(const Family&)) {
    // In a process that has not read its options yet.
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    int result = -1;
    const auto ends = [&result](int status) {
      result = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
      return result == 0 || result == kNotHere;
    };
    EXPECT_EXIT(::_exit(run_apart([talk] { return talk(GetParam()); })), ends, "");
    if (result == kNotHere) GTEST_SKIP() << "no network namespaces with IPv6 can be made here";
  }
};

TEST_P(TwoHostsTest, ud_knows_the_room_of_each_way) {
  expect_good(datagrams);
}
TEST_P(TwoHostsTest, ud_that_loses_nothing_goes_in_parts_where_the_wire_is_narrower) {
  expect_good([](const Family& family) {
    setenv("WEFT_UD", "reliable", 1);
    return datagrams(family);
  });
}
TEST_P(TwoHostsTest, uc_goes_on_when_the_wire_becomes_narrower) {
  expect_good(connections);
}

INSTANTIATE_TEST_SUITE_P(Families, TwoHostsTest, testing::Values(kIpv4, kIpv6),
                         [](const auto& p) { return p.param.name; });

}  // namespace
}  // namespace weft::test
