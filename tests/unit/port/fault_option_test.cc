// WEFT_FAULT as the option of a whole process.

#include <gtest/gtest.h>

#include "port/udp_socket.h"
#include "tests/support/hex.h"

namespace weft::port {
namespace {

UdpSocket bound_to_loopback() {
  Fd fd{::socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
  const Address any = Address::from_gid(Gid::from_ipv4(INADDR_LOOPBACK), 0);
  EXPECT_EQ(::bind(fd.get(), any.get(), any.length), 0);
  return UdpSocket{std::move(fd), 4 << 20};
}

bool sends_into_nothing() {
  ::setenv("WEFT_FAULT", "loss:1,way:out", 1);
  UdpSocket a = bound_to_loopback();
  UdpSocket b = bound_to_loopback();
  const Address to = b.local();
  test::Buffer data = test::pattern(200, 1);
  const IoVec piece{data.data(), data.size()};
  Segmentation s;
  test::Buffer place(1000);
  const auto sent = a.send({.to = &to, .segment = 0, .pieces = {&piece, 1}}, s);
  return sent.bytes == data.size() && b.receive(place).would_block;
}

// It is read once: in a process of its own.
TEST(FaultOptionDeathTest, IsForEverySocket) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(std::exit(sends_into_nothing() ? 0 : 1), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace weft::port
