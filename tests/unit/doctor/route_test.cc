#include "doctor/route.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

#include "doctor/socket.h"

namespace weft::doctor {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr std::chrono::milliseconds kAnswerTimeout{20'000};

port::Address address_of(const std::string& host, uint16_t port = 0) {
  std::string error;
  const auto addresses = addresses_of(host, port, error);
  EXPECT_EQ(addresses.size(), 1U) << error;
  return addresses.empty() ? port::Address{} : addresses.front();
}

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

TEST(Route, ThisMachine) {
  const Finding finding = check_route(gather_route(address_of("127.0.0.1")));
  EXPECT_EQ(finding.severity, Severity::ok);
  EXPECT_THAT(finding.sentence, HasSubstr("127.0.0.1 is this machine"));
}

TEST(Route, SourceAddressAndInterface) {
  const RouteFacts facts = gather_route(address_of("127.0.0.2"));
  EXPECT_EQ(facts.source, "127.0.0.1");
  EXPECT_EQ(facts.interface, "lo");
  const Finding finding = check_route(facts);
  EXPECT_EQ(finding.severity, Severity::ok) << finding.sentence;
  EXPECT_THAT(finding.sentence, HasSubstr("to 127.0.0.2 from 127.0.0.1 (lo, MTU "));
}

TEST(Route, None) {
  // The broadcast address: the kernel refuses to connect to it before anything is sent.
  const Finding finding = check_route(gather_route(address_of("255.255.255.255")));
  EXPECT_EQ(finding.severity, Severity::problem);
  EXPECT_EQ(finding.check, "route");
}

const RouteFacts kSecondAddress{.peer = "198.51.100.7",
                                .source = "198.51.100.1",
                                .interface = "eth1",
                                .mtu = 9000,
                                .gid_index = 2,
                                .first_gid = "192.0.2.1"};

TEST(Route, NamesTheGidIndexThatLeadsThere) {
  const Finding finding = check_route(kSecondAddress);
  EXPECT_EQ(finding.severity, Severity::note);
  EXPECT_THAT(finding.sentence, HasSubstr("GID index 2. Programs that choose no GID take index 0, "
                                          "192.0.2.1"));
  EXPECT_THAT(finding.remedy, HasSubstr("perftest: -x 2; ibv_rc_pingpong and its like: -g 2"));
  EXPECT_THAT(finding.remedy, HasSubstr("WEFT_IP=198.51.100.1"));
}

TEST(Route, TheUsualGidNeedsNoWord) {
  RouteFacts facts = kSecondAddress;
  facts.gid_index = 0;
  EXPECT_EQ(check_route(facts).severity, Severity::ok);
}

TEST(Route, AnAddressThatTheDeviceDoesNotShow) {
  RouteFacts facts = kSecondAddress;
  facts.gid_index.reset();
  const Finding finding = check_route(facts);
  EXPECT_EQ(finding.severity, Severity::problem);
  EXPECT_THAT(finding.remedy, HasSubstr("WEFT_IP=198.51.100.1"));
}

TEST(CheckConnection, ListeningPortIsAccepted) {
  const Port port(true);
  const Finding finding = check_connection(address_of("127.0.0.1", port.number()), kAnswerTimeout);
  EXPECT_EQ(finding.severity, Severity::ok);
  EXPECT_THAT(finding.sentence, HasSubstr("is accepted"));
}

TEST(CheckConnection, SilentPortIsRefused) {
  const Port port(false);
  const Finding finding = check_connection(address_of("127.0.0.1", port.number()), kAnswerTimeout);
  EXPECT_EQ(finding.severity, Severity::problem);
  EXPECT_THAT(finding.sentence, HasSubstr("is refused"));
  EXPECT_THAT(finding.remedy, HasSubstr("start the program there first"));
}

TEST(AddressesOf, NameThatCannotExist) {
  std::string error;
  EXPECT_TRUE(addresses_of("no such host", 1, error).empty());
  const Finding finding = name_not_found("no such host", error);
  EXPECT_EQ(finding.severity, Severity::problem);
  EXPECT_EQ(finding.check, "name");
  EXPECT_THAT(error, Not(IsEmpty()));
  EXPECT_THAT(finding.remedy, Not(IsEmpty()));
}

}  // namespace
}  // namespace weft::doctor
