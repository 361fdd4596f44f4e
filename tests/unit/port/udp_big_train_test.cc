// Trains of datagrams that are larger than the link: IP may cut them up (option ud_big), or not. In
// a network of its own, where loopback carries no more than Ethernet does.

#include <gtest/gtest.h>
#include <netinet/udp.h>
#include <poll.h>
#include <sched.h>

#include <cerrno>
#include <cstdlib>

#include "port/udp_bind.h"
#include "port/udp_socket.h"
#include "tests/support/hex.h"
#include "tests/support/narrow_path.h"

namespace weft::port {
namespace {

using test::Buffer;

const Gid kHere = Gid::from_ipv4(INADDR_LOOPBACK);
constexpr size_t kEach = 20'000;
constexpr size_t kCount = 3;

UdpSocket bound() {
  auto fd = bind_udp(Address::from_gid(kHere, 0));
  return fd.ok() ? UdpSocket{std::move(*fd), 4 << 20} : UdpSocket{};
}

// Does this kernel call such a train too big, or one that it cannot cut?
int answer_to_a_train(const Address& to) {
  const Fd fd{::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
  const int segment = kEach;
  const int any = IP_PMTUDISC_DONT;
  if (::setsockopt(fd.get(), SOL_UDP, UDP_SEGMENT, &segment, sizeof segment) != 0 ||
      ::setsockopt(fd.get(), IPPROTO_IP, IP_MTU_DISCOVER, &any, sizeof any) != 0) {
    return errno;
  }
  const Buffer bytes(kCount * kEach);
  return ::sendto(fd.get(), bytes.data(), bytes.size(), 0, to.get(), to.length) < 0 ? errno : 0;
}

#define WANT(what)                                                    \
  do {                                                                \
    if (!(what)) {                                                    \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #what); \
      return 1;                                                       \
    }                                                                 \
  } while (false)

int trains_over_a_link_of_1500() {
  if ((::unshare(CLONE_NEWNET) != 0 && ::unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) ||
      std::system("ip link set lo mtu 1500 up") != 0) {  // NOLINT(cert-env33-c)
    return test::kNotHere;
  }
  UdpSocket from = bound();
  UdpSocket to = bound();
  WANT(from.valid() && to.valid());
  const Address there = to.local();
  Buffer data = test::pattern(kCount * kEach, 5);
  const IoVec piece{data.data(), data.size()};
  const UdpSocket::Train whole{.to = &there, .segment = kEach, .pieces = {&piece, 1}};
  Segmentation segmentation;
  // Each of them is more than a packet that must not be cut up.
  const auto refused = from.send(whole, segmentation);
  WANT(refused.too_big && refused.bytes == 0 && refused.error == 0 && !refused.would_block);
  WANT(!segmentation.refused());
  UdpSocket::Train in_pieces = whole;
  in_pieces.fragments = true;
  const auto sent = from.send(in_pieces, segmentation);
  WANT(sent.bytes == data.size() && !sent.too_big && sent.error == 0);
  for (size_t i = 0; i < kCount; ++i) {
    pollfd p{to.fd(), POLLIN, 0};
    WANT(::poll(&p, 1, 10'000) == 1);
    Buffer place(65'536);
    const auto r = to.receive(place);
    WANT(r.bytes == kEach);
    WANT(std::equal(place.begin(), place.begin() + kEach,
                    data.begin() + static_cast<ptrdiff_t>(i * kEach)));
  }
  // Smaller ones may well go in trains on the same way.
  WANT(answer_to_a_train(there) != EMSGSIZE || !segmentation.refused());
  return 0;
}

TEST(UdpBigTrain, ThatIpCutsUpGoesOneByOne) {
  const int result = test::run_apart(trains_over_a_link_of_1500);
  if (result == test::kNotHere) GTEST_SKIP() << "no network of its own can be made here";
  EXPECT_EQ(result, 0);
}

}  // namespace
}  // namespace weft::port
