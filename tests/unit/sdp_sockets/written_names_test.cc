#include "sdp/sockets/written_names.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <string>

#include "sdp/sockets/mirror.h"
#include "sdp/sockets/shown_name.h"

namespace weft::sdp {
namespace {

Address v4(const char* text, uint16_t port) {
  Address a{};
  a.any.sa_family = AF_INET;
  EXPECT_EQ(inet_pton(AF_INET, text, &a.v4.sin_addr), 1);
  a.set_port(port);
  return a;
}

Address v6(const char* text, uint16_t port, uint32_t scope) {
  Address a{};
  a.any.sa_family = AF_INET6;
  EXPECT_EQ(inet_pton(AF_INET6, text, &a.v6.sin6_addr), 1);
  a.v6.sin6_scope_id = scope;
  a.set_port(port);
  return a;
}

class WrittenNamesTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(pair_.open()); }
  int fd() const { return pair_.outer.get(); }
  SocketPair pair_;
};

TEST_F(WrittenNamesTest, AreReadFromADescriptorAndItsCopies) {
  EXPECT_FALSE(written_names(fd())) << "nothing was written";
  write_names(fd(), {v4("192.0.2.1", 5001), v4("198.51.100.77", 65535)});
  const File copy{::dup(fd())};
  for (const int one : {fd(), copy.get()}) {
    const auto names = written_names(one);
    ASSERT_TRUE(names);
    EXPECT_EQ(names->own.any.sa_family, AF_INET);
    EXPECT_EQ(to_string(names->own), "192.0.2.1:5001");
    EXPECT_EQ(to_string(names->peer), "198.51.100.77:65535");
  }
  EXPECT_FALSE(written_names(pair_.inner.get()));
}

TEST_F(WrittenNamesTest, OfIpv6KeepFamilyAndScope) {
  write_names(fd(), {v6("fe80::1234:5678:9abc:def0", 80, 7), v6("::ffff:192.0.2.9", 1, 7)});
  const auto names = written_names(fd());
  ASSERT_TRUE(names);
  EXPECT_EQ(names->own.any.sa_family, AF_INET6);
  EXPECT_EQ(to_string(names->own), "[fe80::1234:5678:9abc:def0]:80");
  EXPECT_EQ(names->own.v6.sin6_scope_id, 7U);
  // An IPv6 socket that speaks IPv4 stays one of IPv6.
  EXPECT_EQ(names->peer.any.sa_family, AF_INET6);
}

TEST_F(WrittenNamesTest, OfTwoConnectionsBetweenTheSamePlacesMayBeTheSame) {
  SocketPair other;
  ASSERT_TRUE(other.open());
  const WrittenNames names{v4("127.0.0.1", 9), v4("127.0.0.1", 10)};
  write_names(fd(), names);
  write_names(other.outer.get(), names);
  EXPECT_TRUE(written_names(fd()));
  EXPECT_TRUE(written_names(other.outer.get()));
}

TEST_F(WrittenNamesTest, OtherNamesAreNone) {
  EXPECT_FALSE(written_names(-1));
  const File udp{::socket(AF_INET, SOCK_DGRAM, 0)};
  EXPECT_FALSE(written_names(udp.get()));
  // Of every length: what is cut off, and what goes on.
  write_names(fd(), {v4("192.0.2.1", 5001), v4("198.51.100.77", 65535)});
  sockaddr_un whole{};
  socklen_t size = sizeof whole;
  ASSERT_EQ(::getsockname(fd(), reinterpret_cast<sockaddr*>(&whole), &size), 0);
  for (socklen_t length = offsetof(sockaddr_un, sun_path) + 2; length < size - 16; ++length) {
    const File other{::socket(AF_UNIX, SOCK_STREAM, 0)};
    ASSERT_EQ(::bind(other.get(), reinterpret_cast<const sockaddr*>(&whole), length), 0);
    EXPECT_FALSE(written_names(other.get())) << length;
  }
  whole.sun_path[20] = 'x';
  const File other{::socket(AF_UNIX, SOCK_STREAM, 0)};
  ASSERT_EQ(::bind(other.get(), reinterpret_cast<const sockaddr*>(&whole), size), 0);
  EXPECT_FALSE(written_names(other.get()));
}

}  // namespace
}  // namespace weft::sdp
