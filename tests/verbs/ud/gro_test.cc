// UDP_GRO: to put together what comes one by one costs time, so the kernel is not to
// (port/udp_tuning.h).

#include <gtest/gtest.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include "tests/support/counted.h"
#include "tests/verbs/ud/member.h"

namespace weft::test {
namespace {

bool kernel_has_gro() {
  const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  const bool has = ::setsockopt(fd, SOL_UDP, UDP_GRO, &on, sizeof on) == 0;
  ::close(fd);
  return has;
}

TEST(UdGro, what_comes_one_by_one_is_not_put_together) {
  if (!kernel_has_gro()) GTEST_SKIP() << "no UDP_GRO";
  Member a;
  const Member b;
  const AhPtr to_b = a.handle_to(own_gid(b.a));
  const Counted switches{"gro_switches"};
  for (int round = 0; round < 10'000 && switches.grown().empty(); ++round) {
    for (size_t i = 0; i < Member::kRooms; ++i) b.receive(i);
    for (size_t i = 0; i + 1 < Member::kRooms; ++i) {
      const auto seed = static_cast<uint8_t>(round * 8 + static_cast<int>(i));
      a.send(to_b.get(), seed, b.qp->qp_num);
      ASSERT_TRUE(b.hears(seed, a.qp->qp_num, i));
      // Nothing is behind it, and somebody looks.
      for (int look = 0; look < 3; ++look) ASSERT_TRUE(b.silent());
    }
    a.send(to_b.get(), 0, b.qp->qp_num);
    ASSERT_TRUE(b.hears(0, a.qp->qp_num, Member::kRooms - 1));
  }
  EXPECT_FALSE(switches.grown().empty());
}

}  // namespace
}  // namespace weft::test
