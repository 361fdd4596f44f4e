#include "weft/doctor_peer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

#include "weft/socket.h"

namespace weft::tools {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// A TCP port of 127.0.0.1 that listens, or one that is taken and does not.
class Port {
 public:
  explicit Port(bool listens) : socket_(AF_INET, SOCK_STREAM) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(bind(socket_.get(), generic, length), 0);
    EXPECT_EQ(getsockname(socket_.get(), generic, &length), 0);
    if (listens) {
      EXPECT_EQ(listen(socket_.get(), 1), 0);
    }
    number_ = ntohs(address.sin_port);
  }
  uint16_t number() const { return number_; }

 private:
  Socket socket_;
  uint16_t number_ = 0;
};

TEST(CheckPeer, ThisMachine) {
  const auto findings = check_peer({"127.0.0.1", std::nullopt});
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].severity, Severity::ok);
  EXPECT_EQ(findings[0].sentence, "127.0.0.1 is this machine");
}

TEST(CheckPeer, SourceAddressAndInterface) {
  const auto findings = check_peer({"127.0.0.2", std::nullopt});
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].severity, Severity::ok);
  EXPECT_THAT(findings[0].sentence, HasSubstr("to 127.0.0.2 from 127.0.0.1 (lo), path MTU "));
}

TEST(CheckPeer, ListeningPortIsAccepted) {
  const Port port(true);
  const auto findings = check_peer({"127.0.0.1", port.number()});
  ASSERT_EQ(findings.size(), 2U);
  EXPECT_EQ(findings[1].severity, Severity::ok);
  EXPECT_THAT(findings[1].sentence, HasSubstr("is accepted"));
}

TEST(CheckPeer, SilentPortIsRefused) {
  const Port port(false);
  const auto findings = check_peer({"127.0.0.1", port.number()});
  ASSERT_EQ(findings.size(), 2U);
  EXPECT_EQ(findings[1].severity, Severity::problem);
  EXPECT_THAT(findings[1].sentence, HasSubstr("is refused"));
  EXPECT_THAT(findings[1].remedy, HasSubstr("start the program there first"));
}

TEST(CheckPeer, NoRoute) {
  // The broadcast address: the kernel refuses to connect to it before anything is sent.
  const auto findings = check_peer({"255.255.255.255", 7});
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].severity, Severity::problem);
  EXPECT_EQ(findings[0].check, "route");
}

TEST(CheckPeer, NameThatCannotExist) {
  const auto findings = check_peer({"no such host", std::nullopt});
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].severity, Severity::problem);
  EXPECT_EQ(findings[0].check, "name");
  EXPECT_THAT(findings[0].remedy, Not(IsEmpty()));
}

}  // namespace
}  // namespace weft::tools
