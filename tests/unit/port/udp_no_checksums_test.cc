// A device that does not sum what it sends. Linux before 6.11 cuts no trains for it (sendmsg(2)
// with UDP_SEGMENT is EIO), later ones do the sums; nobody is to see a difference. Between two
// hosts of namespaces, as root.

#include <gtest/gtest.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <poll.h>
#include <sys/ioctl.h>

#include <stdexcept>

#include "port/udp_socket.h"
#include "tests/support/hex.h"
#include "tests/support/two_hosts.h"

namespace weft::port {
namespace {

constexpr size_t kSegment = 1000;
constexpr size_t kTrains = 5;

void check(bool good, const char* what) {
  if (!good) throw std::runtime_error(what);
}

UdpSocket bound(const Gid& gid) {
  Fd fd{::socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
  const Address at = Address::from_gid(gid, 0);
  check(fd.valid() && ::bind(fd.get(), at.get(), at.length) == 0, "a socket");
  return UdpSocket{std::move(fd), 1 << 20};
}

// As `ethtool -K wire tx off` does.
bool leaves_sums_to_others(const UdpSocket& socket) {
  ethtool_value off{.cmd = ETHTOOL_STXCSUM, .data = 0};
  ifreq request{};
  std::strncpy(request.ifr_name, "wire", IFNAMSIZ - 1);
  request.ifr_data = reinterpret_cast<char*>(&off);
  return ::ioctl(socket.fd(), SIOCETHTOOL, &request) == 0;
}

int send_through_it() {
  const test::TwoHosts hosts;
  if (!hosts.made()) return test::kNotHere;
  const Gid far = Gid::from_ipv4(0xc0000202);
  check(hosts.enter_far(), "setns");
  UdpSocket receiver = bound(far);
  check(hosts.enter_near(), "setns");
  UdpSocket sender = bound(Gid::from_ipv4(0xc0000201));
  check(leaves_sums_to_others(sender), "SIOCETHTOOL");
  const Address to = Address::from_gid(far, receiver.local().port());
  Segmentation segmentation;
  test::Buffer data = test::pattern(kTrains * 20 * kSegment, 3);
  for (size_t i = 0; i < kTrains; ++i) {
    const IoVec piece{data.data() + i * 20 * kSegment, 20 * kSegment};
    const auto sent =
        sender.send({.to = &to, .segment = kSegment, .pieces = {&piece, 1}}, segmentation);
    check(sent.error == 0 && sent.bytes == 20 * kSegment, "a train is taken");
  }
  test::Buffer came;
  test::Buffer place(65'536);
  while (came.size() < data.size()) {
    const auto r = receiver.receive(place);
    if (r.would_block) {
      pollfd p{.fd = receiver.fd(), .events = POLLIN, .revents = 0};
      check(::poll(&p, 1, 10'000) == 1, "all datagrams come");
      continue;
    }
    check(r.error == 0 && r.segment == kSegment, "a datagram");
    came.insert(came.end(), place.begin(), place.begin() + static_cast<ptrdiff_t>(r.bytes));
  }
  check(came == data, "the bytes");
  return 0;
}

TEST(UdpNoChecksums, TrainsArriveAllTheSame) {
  const int result = test::run_apart(send_through_it);
  if (result == test::kNotHere) GTEST_SKIP() << "no network namespaces can be made here";
  EXPECT_EQ(result, 0);
}

}  // namespace
}  // namespace weft::port
