#include "doctor/local_port.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <unistd.h>

#include "doctor/socket.h"

namespace weft::doctor {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kTable =
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout "
    "inode\n"
    "   0: 0100007F:4853 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 "
    "4242 1 0000000000000000 100 0 0 10 0\n"
    "   1: 0200A8C0:4853 0700A8C0:9C40 01 00000000:00000000 00:00000000 00000000  1001        0 "
    "4243 1 0000000000000000 20 4 30 10 -1\n"
    "   2: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 "
    "4244 1 0000000000000000 100 0 0 10 0\n"
    "   3: nonsense\n";
constexpr const char* kTable6 =
    "  sl  local_address                         remote_address                        st tx_queue "
    "rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
    "   0: 00000000000000000000000001000000:4853 00000000000000000000000000000000:0000 07 "
    "00000000:00000000 00:00000000 00000000  1002        0 4245 2 0000000000000000 0\n";

TEST(HoldersIn, TcpSocketsThatListen) {
  const auto holders = holders_in(kTable, "TCP", 18515);
  ASSERT_EQ(holders.size(), 1U) << "a connection does not keep others from listening";
  EXPECT_EQ(holders[0].address, "127.0.0.1");
  EXPECT_EQ(holders[0].user, 1000U);
  EXPECT_EQ(holders[0].inode, 4242U);
}

TEST(HoldersIn, EveryUdpSocketAndIpv6) {
  EXPECT_EQ(holders_in(kTable, "UDP", 18515).size(), 2U);
  const auto holders = holders_in(kTable6, "UDP", 18515);
  ASSERT_EQ(holders.size(), 1U);
  EXPECT_EQ(holders[0].address, "::1");
  EXPECT_EQ(holders[0].user, 1002U);
}

TEST(JudgeLocalPort, NamesProcessAndUserAsFarAsTheyAreKnown) {
  const Finding finding = judge_local_port(
      18515, {{"TCP", "0.0.0.0", 1000, 4242, "77 (rping)"}, {"UDP", "::", 0, 4243, ""}});
  EXPECT_EQ(finding.severity, Severity::problem);
  EXPECT_EQ(finding.sentence,
            "port 18515 of this host is held, TCP on 0.0.0.0: process 77 (rping) of user 1000; UDP "
            "on ::: a process of user 0 that this user may not look at");
  EXPECT_THAT(finding.remedy, HasSubstr("18515"));
}

TEST(JudgeLocalPort, Free) {
  const Finding finding = judge_local_port(18515, {});
  EXPECT_EQ(finding.severity, Severity::ok);
  EXPECT_THAT(finding.remedy, IsEmpty());
}

TEST(CheckLocalPort, FindsThisProcess) {
  const Socket socket(AF_INET, SOCK_STREAM);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(bind(socket.get(), generic, length), 0);
  ASSERT_EQ(listen(socket.get(), 1), 0);
  ASSERT_EQ(getsockname(socket.get(), generic, &length), 0);
  const Finding finding = check_local_port(ntohs(address.sin_port));
  EXPECT_EQ(finding.severity, Severity::problem);
  EXPECT_THAT(finding.sentence, HasSubstr("TCP on 127.0.0.1: process " + std::to_string(getpid()) +
                                          " (doctor_test)"));
}

}  // namespace
}  // namespace weft::doctor
