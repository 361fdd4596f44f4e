#include "port/socket_owner.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <utility>

#include "port/tcp_listener.h"
#include "tests/support/as_user.h"
#include "tests/support/refused_calls.h"

namespace weft::port {
namespace {

using test::as_user;
using test::kOtherUser;
using test::kSomeUser;

Address loopback(uint16_t port = 0) {
  return Address::from_gid(Gid::from_ipv4(INADDR_LOOPBACK), port);
}
// A socket that a process has.
SocketOwner user(uid_t u, uint64_t inode = 1) {
  return {.user = u, .inode = inode};
}

// A listener and a connection to it.
struct Pair {
  explicit Pair(const Address& at = Address::any(AF_INET6, 0), const Address& to = loopback())
      : listener{std::move(*TcpListener::listen(at, 4))}, target{[&] {
          Address a = to;
          a.set_port(listener.local().port());
          return a;
        }()} {}
  // The caller's address: the kernel completes the connection before it is accepted.
  Address connect() {
    caller = Fd{::socket(target.family(), SOCK_STREAM | SOCK_CLOEXEC, 0)};
    EXPECT_EQ(::connect(caller.get(), target.get(), target.length), 0);
    return Address::of_socket(caller.get());
  }
  TcpListener listener;
  Address target;
  Fd caller;
};

using Owner = Result<std::optional<SocketOwner>, SystemError>;
void expect(const Owner& found, const std::optional<SocketOwner>& wanted) {
  ASSERT_TRUE(found.ok()) << found.error().to_string();
  ASSERT_EQ(found->has_value(), wanted.has_value());
  if (!wanted) return;
  EXPECT_EQ((**found).user, wanted->user);
  EXPECT_EQ((**found).held(), wanted->held());
}

// What holds however the kernel is asked.
void expect_own_sockets() {
  Pair p;
  const Address from = p.connect();
  expect(tcp_owner(from, p.target, true), user(::geteuid()));
  expect(tcp_owner(p.target, {}, true), user(::geteuid()));
  // The other end, which nobody has accepted yet, is the kernel's alone.
  expect(tcp_owner(p.target, from, true), SocketOwner{});
  // A wildcard listens on every address, a connection is between two and no others.
  expect(tcp_owner(Address::from_gid(Gid::from_ipv4(0x7f000002), p.target.port()), {}, true),
         user(::geteuid()));
  Address other = from;
  other.set_port(static_cast<uint16_t>(from.port() ^ 1));
  expect(tcp_owner(other, p.target, true), std::nullopt);
  expect(tcp_owner(other, {}, true), std::nullopt);
  p.listener.close();
  expect(tcp_owner(p.target, {}, true), std::nullopt);
}

TEST(SocketOwner, ConnectionsAndListenersOfThisProcess) {
  expect_own_sockets();
}

TEST(SocketOwner, AConnectionThatIsNotThereIsNoListener) {
  Pair p;
  Address elsewhere = loopback(9);
  expect(tcp_owner(p.target, elsewhere, true), std::nullopt);
}

TEST(SocketOwner, OverIpv6) {
  Gid one{};
  one.raw[15] = 1;
  const Address to = Address::from_gid(one, 0);
  const Fd probe{::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  if (!probe.valid() || ::bind(probe.get(), to.get(), to.length) != 0) {
    GTEST_SKIP() << "no ::1 on this host";
  }
  Pair p{Address::any(AF_INET6, 0), to};
  const Address from = p.connect();
  expect(tcp_owner(from, p.target, true), user(::geteuid()));
  expect(tcp_owner(p.target, {}, true), user(::geteuid()));
}

// An IPv4 caller of a socket for both families has a mapped address.
TEST(SocketOwner, MappedAddressesAreThoseOfIpv4) {
  Pair p;
  const Address from = p.connect();
  const auto mapped = [](const Address& a) { return Address::from_gid_as_ipv6(a.gid(), a.port()); };
  expect(tcp_owner(mapped(from), mapped(p.target), true), user(::geteuid()));
}

// Anybody could leave a socket behind that the kernel brings to its end as nobody's.
TEST(SocketOwner, AClosedSocketIsHeldByNobody) {
  Pair p;
  const Address from = p.connect();
  const auto accepted = p.listener.accept();
  p.caller.reset();
  expect(tcp_owner(from, p.target, true), SocketOwner{});
}

TEST(SocketOwner, OtherUsersHaveTheirs) {
  if (!test::many_users()) GTEST_SKIP() << "only root can be several users";
  Pair p;
  Address from;
  as_user(kSomeUser, [&] { from = p.connect(); });
  expect(tcp_owner(from, p.target, true), user(kSomeUser));
  expect(tcp_owner(p.target, {}, true), user(::geteuid()));
  std::optional<Pair> theirs;
  as_user(kOtherUser, [&] { theirs.emplace(); });
  expect(tcp_owner(theirs->target, {}, true), user(kOtherUser));
}

TEST(SocketOwner, KnowsTheDescriptorsOfThisProcess) {
  Pair p;
  const Address from = p.connect();
  const auto listens = tcp_owner(p.target, {}, true);
  ASSERT_TRUE(listens.ok() && *listens);
  EXPECT_EQ(own_descriptor(**listens), p.listener.fd());
  const auto calls = tcp_owner(from, p.target, true);
  ASSERT_TRUE(calls.ok() && *calls);
  EXPECT_EQ(own_descriptor(**calls), p.caller.get());
  p.caller.reset();
  EXPECT_EQ(own_descriptor(**calls), std::nullopt);
}

// In a child: what is refused stays refused.
void expect_in_child(void (*body)()) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    body();
    ::_exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 100) GTEST_SKIP() << "no seccomp filters here";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

void no_netlink() {
  if (!test::refuse_call(SYS_socket, EAFNOSUPPORT, AF_NETLINK)) ::_exit(100);
}

TEST(SocketOwner, WithoutNetlinkProcTells) {
  expect_in_child([] {
    no_netlink();
    expect_own_sockets();
    Pair p;
    EXPECT_EQ(tcp_owner(p.target, {}, false).error().code, EAFNOSUPPORT);
  });
}

TEST(SocketOwner, WithNeitherItIsAnError) {
  expect_in_child([] {
    no_netlink();
    if (!test::refuse_call(SYS_openat, EACCES)) ::_exit(100);
    Pair p;
    const auto told = tcp_owner(p.target, {}, true);
    ASSERT_FALSE(told.ok());
    EXPECT_EQ(told.error().code, EACCES);
  });
}

// --- the text of /proc

constexpr const char* kHead =
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout "
    "inode\n";

std::string line(const char* local, const char* remote, const char* state, unsigned uid,
                 unsigned inode) {
  return std::string{"   7: "} + local + " " + remote + " " + state +
         " 00000000:00000000 00:00000000 00000000 " + std::to_string(uid) + "        0 " +
         std::to_string(inode) + " 1 0000000000000000 100 0 0 10 0\n";
}

TEST(TcpOwnerIn, ConnectionsByAllFourNumbers) {
  const std::string text = kHead + line("0100007F:1F90", "0100007F:C350", "01", 7, 100) +
                           line("0100007F:C350", "0100007F:1F90", "01", 8, 101) +
                           line("0100007F:C351", "0100007F:1F90", "05", 0, 0);
  EXPECT_EQ(tcp_owner_in(text, loopback(0xc350), loopback(0x1f90)), user(8, 101));
  EXPECT_EQ(tcp_owner_in(text, loopback(0x1f90), loopback(0xc350)), user(7, 100));
  EXPECT_EQ(tcp_owner_in(text, loopback(0xc351), loopback(0x1f90)), SocketOwner{});
  EXPECT_EQ(tcp_owner_in(text, loopback(0xc350), loopback(0x1f91)), std::nullopt);
  EXPECT_EQ(tcp_owner_in(text, loopback(0x1f90), {}), std::nullopt) << "nobody listens";
}

// As the kernel chooses: an address before a wildcard.
TEST(TcpOwnerIn, TheListenerThatWouldGetTheConnection) {
  const std::string text = kHead + line("00000000:1F90", "00000000:0000", "0A", 1, 100) +
                           line("0200007F:1F90", "00000000:0000", "0A", 2, 101);
  EXPECT_EQ(tcp_owner_in(text, loopback(0x1f90), {}), user(1, 100));
  const Address two = Address::from_gid(Gid::from_ipv4(0x7f000002), 0x1f90);
  EXPECT_EQ(tcp_owner_in(text, two, {}), user(2, 101));
  Gid six{};
  six.raw[15] = 1;
  EXPECT_EQ(tcp_owner_in(text, Address::from_gid(six, 0x1f90), {}), std::nullopt)
      << "the wildcard of IPv4 hears no IPv6";
}

TEST(TcpOwnerIn, Ipv6AndMappedAddresses) {
  const std::string zero(32, '0');
  const std::string text = kHead +
                           line((zero + ":1F90").c_str(), (zero + ":0000").c_str(), "0A", 3, 100) +
                           line("0000000000000000FFFF00000100007F:1F91",
                                "0000000000000000FFFF00000100007F:C350", "01", 4, 101) +
                           line("B80D0120000000000000000001000000:1F92",
                                "B80D0120000000000000000002000000:C350", "01", 5, 102);
  EXPECT_EQ(tcp_owner_in(text, loopback(0x1f90), {}), user(3, 100)) << "for both families";
  EXPECT_EQ(tcp_owner_in(text, loopback(0x1f91), loopback(0xc350)), user(4, 101));
  Gid one{{0x20, 0x01, 0x0d, 0xb8}};
  Gid two = one;
  one.raw[15] = 1;
  two.raw[15] = 2;
  EXPECT_EQ(tcp_owner_in(text, Address::from_gid(one, 0x1f92), Address::from_gid(two, 0xc350)),
            user(5, 102));
}

TEST(TcpOwnerIn, LinesThatDoNotParseArePassedOver) {
  for (const char* broken :
       {"", "\n\n", "   7:\n", "   7: 0100007F 0100007F:C350 01\n", "   7: 0100007F:10000 x:1 0A\n",
        "   7: 01:1F90 00000000:0000 0A 0 0 0 5 0 1\n",
        "   7: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000 x 0 1\n"}) {
    EXPECT_EQ(tcp_owner_in(broken, loopback(0x1f90), {}), std::nullopt) << broken;
    EXPECT_EQ(tcp_owner_in(broken + line("0100007F:1F90", "00000000:0000", "0A", 6, 1),
                           loopback(0x1f90), {}),
              user(6))
        << broken;
  }
}

}  // namespace
}  // namespace weft::port
