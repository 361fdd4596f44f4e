// Multicast groups as sockets of others see them: what reaches members, and what is sent to a group
// (spec/wdp-ud 5.2).

#include <gtest/gtest.h>
#include <netinet/ip.h>
#include <sys/mman.h>

#include "tests/support/counted.h"
#include "tests/verbs/own_network.h"
#include "tests/verbs/raw_peer.h"
#include "tests/verbs/ud/member.h"
#include "wdp/multicast.h"
#include "wire/wdp_ctl.h"
#include "wire/wdp_ud.h"

namespace weft::test {
namespace {

wdp::Endpoint endpoint_of(const ibv_gid& group) {
  return wdp::multicast_endpoint(gid_of(group), true);
}

// Somebody else's socket of UDP, at an address of this host; IPv4.
class Stranger {
 public:
  explicit Stranger(const ibv_gid& here) : here_(here), fd_(make()) {
    SocketAddress at(here, 0);
    const in_addr interface = own();
    check(::bind(fd_, at.get(), at.length) == 0 &&
              ::setsockopt(fd_, IPPROTO_IP, IP_MULTICAST_IF, &interface, sizeof interface) == 0,
          "a socket");
  }
  // One that hears what is sent to the group by that address's interface.
  Stranger(const ibv_gid& here, const ibv_gid& group) : here_(here), fd_(make()) {
    const int on = 1;
    SocketAddress at(group, endpoint_of(group).port);
    const ip_mreq join{.imr_multiaddr = reinterpret_cast<sockaddr_in*>(at.get())->sin_addr,
                       .imr_interface = own()};
    check(::setsockopt(fd_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
              ::bind(fd_, at.get(), at.length) == 0 &&
              ::setsockopt(fd_, IPPROTO_IP, IP_ADD_MEMBERSHIP, &join, sizeof join) == 0 &&
              ::setsockopt(fd_, IPPROTO_IP, IP_RECVTTL, &on, sizeof on) == 0,
          "a member");
  }
  ~Stranger() { ::close(fd_); }
  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;

  void say(const std::vector<std::byte>& bytes, const ibv_gid& group) const {
    SocketAddress to(group, endpoint_of(group).port);
    check(::sendto(fd_, bytes.data(), bytes.size(), 0, to.get(), to.length) ==
              static_cast<ssize_t>(bytes.size()),
          "sendto");
  }
  // The hop limit of the next datagram; -1: none comes within 10 s.
  int hops() const {
    pollfd p{fd_, POLLIN, 0};
    if (::poll(&p, 1, 10'000) != 1) return -1;
    char bytes[2000];
    iovec piece{bytes, sizeof bytes};
    alignas(cmsghdr) char control[128];
    msghdr m{};
    m.msg_iov = &piece;
    m.msg_iovlen = 1;
    m.msg_control = control;
    m.msg_controllen = sizeof control;
    check(::recvmsg(fd_, &m, 0) > 0, "recvmsg");
    int hops = -1;
    for (cmsghdr* c = CMSG_FIRSTHDR(&m); c != nullptr; c = CMSG_NXTHDR(&m, c)) {
      if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TTL) {
        std::memcpy(&hops, CMSG_DATA(c), sizeof hops);
      }
    }
    return hops;
  }

 private:
  static int make() { return ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0); }
  in_addr own() const { return {htonl(gid_of(here_).ipv4())}; }
  const ibv_gid here_;
  const int fd_;
};

std::vector<std::byte> message_to(Qpn destination, uint8_t seed) {
  std::vector<std::byte> d(wire::WdpUd::kSize + Member::kSize);
  wire::WdpUd{.q_key = QKey{kQKey},
              .source = make_qpn(50'000, 2),
              .destination = destination,
              .length = Member::kSize}
      .encode(d.data());
  for (size_t i = 0; i < Member::kSize; ++i) {
    d[wire::WdpUd::kSize + i] = std::byte{Member::byte_at(seed, i)};
  }
  return d;
}

std::vector<std::byte> call() {
  const wire::WdpCtl req{.type = wire::CtlType::req,
                         .source_token = SessionToken{0x5eed},
                         .source = make_qpn(50'000, 2),
                         .xid = Xid{77},
                         .service = wire::CtlService::uc,
                         .max_payload = 1472};
  std::vector<std::byte> d(req.size());
  req.encode(d.data());
  return d;
}

TEST(MulticastSocket, only_messages_to_the_group_reach_its_members) {
  const Member member;
  const ibv_gid here = own_gid(member.a);
  if (!is_ipv4(here)) GTEST_SKIP() << "no IPv4 address on this host";
  const ibv_gid g = ipv4_group();
  ASSERT_EQ(member.attach(g), 0);
  member.receive();
  const Stranger stranger(here);
  const Counted dropped{"datagram_dropped"};
  stranger.say(message_to(Qpn{member.qp->qp_num}, 1), g);
  stranger.say(call(), g);
  dropped.expect({{"not_for_multicast", 1}, {"wrong_class", 1}});
  EXPECT_TRUE(member.silent());
  stranger.say(message_to(wire::kMulticastQpn, 2), g);
  EXPECT_TRUE(member.hears(2, make_qpn(50'000, 2).value()));
}

// spec/wdp-ud 5.3: TTL 1 by default. What single hosts are sent has another.
TEST(MulticastSocket, a_group_has_the_handles_hop_limit_or_1) {
  Member sender;
  const ibv_gid here = own_gid(sender.a);
  if (!is_ipv4(here)) GTEST_SKIP() << "no IPv4 address on this host";
  const ibv_gid g = ipv4_group();
  const Stranger ear(here, g);
  const AhPtr near = sender.handle_to(g);
  const AhPtr far = sender.handle_to(g, 5);
  const AhPtr host = sender.handle_to(here, 5);
  constexpr uint8_t kRow = 40;  // more than what the socket gets used to (port/udp_tuning.h)
  for (uint8_t i = 0; i < kRow; ++i) {
    sender.send(near.get(), i);
    ASSERT_EQ(ear.hops(), 1) << int{i};
  }
  for (uint8_t i = 0; i < kRow; ++i) {
    sender.send(far.get(), i);
    ASSERT_EQ(ear.hops(), 5) << int{i};
  }
  for (uint8_t i = 0; i < kRow; ++i) sender.send(host.get(), i, sender.qp->qp_num);
  for (uint8_t i = 0; i < kRow; ++i) {
    sender.send(near.get(), i);
    ASSERT_EQ(ear.hops(), 1) << int{i};
    sender.send(far.get(), i);
    ASSERT_EQ(ear.hops(), 5) << int{i};
  }
}

// --- interfaces that come and go, in a network of its own

constexpr const char* kFirstLink =
    "ip link set lo up && ip link add one type veth peer name one_end && ip link set one_end up && "
    "ip link set one up && ip address add 192.0.2.1/24 dev one";
constexpr const char* kSecondLink =
    "ip link add two type veth peer name two_end && ip link set two_end up && ip link set two up "
    "&& "
    "ip address add 198.51.100.1/24 dev two";

ibv_gid ipv4_address(uint8_t a, uint8_t b, uint8_t c, uint8_t d) {
  ibv_gid g{};
  g.raw[10] = g.raw[11] = 0xff;
  g.raw[12] = a;
  g.raw[13] = b;
  g.raw[14] = c;
  g.raw[15] = d;
  return g;
}

// On one engine, so that all members share a socket.
void an_interface_comes_up_later() {
  const ibv_gid g = ipv4_group();
  const Member early;
  check_errno(early.attach(g), "attach");
  check(run_command(kSecondLink), "another link");
  const Member late;
  check_errno(late.attach(g), "attach");
  early.receive();
  late.receive();
  const Stranger stranger(ipv4_address(198, 51, 100, 1));
  stranger.say(message_to(wire::kMulticastQpn, 3), g);
  const uint32_t source = make_qpn(50'000, 2).value();
  check(late.hears(3, source), "who came with it hears by it");
  check(early.hears(3, source), "and so does who was there before");
}

TEST(MulticastInterfaces, one_that_comes_up_later_is_joined) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  bool here = true;
  EXPECT_EXIT(in_own_network(kFirstLink, {{"WEFT_ENGINES", "1"}}, an_interface_comes_up_later),
              EndsWell{here}, "");
  if (!here) GTEST_SKIP() << "no network of its own can be made here";
}

void an_interface_is_gone() {
  check(run_command(kSecondLink), "another link");
  const Member member;
  check(run_command("ip link delete two"), "it goes");
  const int said = ::memfd_create("said", MFD_CLOEXEC);
  const int errors = ::dup(STDERR_FILENO);
  check(said >= 0 && errors >= 0 && ::dup2(said, STDERR_FILENO) == STDERR_FILENO, "a file");
  const int attached = member.attach(ipv4_group());
  ::dup2(errors, STDERR_FILENO);
  check_errno(attached, "attach");
  char text[4096] = "";
  (void)!::pread(said, text, sizeof text - 1, 0);
  check(std::strstr(text, "multicast group 239.") != nullptr &&
            std::strstr(text, "interface two: No such device") != nullptr,
        text);
  member.receive();
  const Stranger stranger(ipv4_address(192, 0, 2, 1));
  stranger.say(message_to(wire::kMulticastQpn, 4), ipv4_group());
  check(member.hears(4, make_qpn(50'000, 2).value()), "the other one is heard by");
}

TEST(MulticastInterfaces, one_that_cannot_be_joined_is_said) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  bool here = true;
  EXPECT_EXIT(in_own_network(kFirstLink, {{"WEFT_LOG", "info"}}, an_interface_is_gone),
              EndsWell{here}, "");
  if (!here) GTEST_SKIP() << "no network of its own can be made here";
}

}  // namespace
}  // namespace weft::test
