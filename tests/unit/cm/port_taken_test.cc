// The sentences for a user whose port is taken, and whom they name.

#include "cm/port_taken.h"

#include <gtest/gtest.h>

#include "port/tcp_listener.h"
#include "tests/support/as_user.h"

namespace weft::cm {
namespace {

port::Address loopback(uint16_t port) {
  return port::Address::from_gid(Gid::from_ipv4(0x7f000001), port);
}

// The first sentence of each kind alone is a warning: each test asks in a process of its own.
void say(const port::Address& at, void (*what)(const port::Address&)) {
  what(at);
  _exit(0);
}

class PortTaken : public testing::Test {
 protected:
  PortTaken() { GTEST_FLAG_SET(death_test_style, "fast"); }
  static port::TcpListener listen() {
    auto l = port::TcpListener::listen(loopback(0), 1);
    EXPECT_TRUE(l.ok());
    return std::move(*l);
  }
};
using PortTakenDeathTest = PortTaken;

TEST_F(PortTakenDeathTest, NamesTheDescriptorOfThisProcess) {
  const auto l = listen();
  EXPECT_EXIT(say(l.local(), say_tcp_port_taken), testing::ExitedWithCode(0),
              "TCP port " + std::to_string(l.local().port()) +
                  " is taken, by a socket of this process .descriptor " + std::to_string(l.fd()) +
                  ".");
}

TEST_F(PortTakenDeathTest, NamesTheUser) {
  if (!test::many_users()) GTEST_SKIP() << "only root can be several users";
  // Held by a child alone: this process would find it among its own descriptors.
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    uint16_t port = 0;
    test::as_user(test::kSomeUser, [&] {
      const auto l = listen();
      port = l.local().port();
      (void)!::write(ready[1], &port, sizeof port);
      ::pause();
    });
    _exit(0);
  }
  uint16_t port = 0;
  EXPECT_EQ(::read(ready[0], &port, sizeof port), static_cast<ssize_t>(sizeof port));
  EXPECT_EXIT(say(loopback(port), say_tcp_port_taken), testing::ExitedWithCode(0),
              "by a socket of user " + std::to_string(test::kSomeUser));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ::close(ready[0]);
  ::close(ready[1]);
}

// It was taken when the kernel was asked for it, and is free by now.
TEST_F(PortTakenDeathTest, ASocketThatNobodyFindsIsAnotherOne) {
  const port::Address gone = listen().local();
  EXPECT_EXIT(say(gone, say_tcp_port_taken), testing::ExitedWithCode(0),
              "is taken, by another socket");
}

TEST_F(PortTakenDeathTest, OfUdpItNamesThePort) {
  EXPECT_EXIT(say(loopback(4711), say_udp_port_taken), testing::ExitedWithCode(0),
              "UDP port 4711 is taken, by another socket");
}

}  // namespace
}  // namespace weft::cm
