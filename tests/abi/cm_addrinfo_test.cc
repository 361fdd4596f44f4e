// rdma_getaddrinfo.
#include <netdb.h>

#include "tests/abi/cm_fixture.h"

namespace weft::test {
namespace {

using CmAddrinfo = CmTest;

struct FreeInfo {
  void operator()(rdma_addrinfo* i) const { rdma_freeaddrinfo(i); }
};
using OwnedInfo = std::unique_ptr<rdma_addrinfo, FreeInfo>;

OwnedInfo look_up(const char* node, const char* service, const rdma_addrinfo* hints) {
  rdma_addrinfo* i = nullptr;
  EXPECT_EQ(rdma_getaddrinfo(node, service, hints, &i), 0);
  return OwnedInfo{i};
}

TEST_F(CmAddrinfo, AddressInfoOfAServer) {
  rdma_addrinfo hints{};
  hints.ai_port_space = RDMA_PS_TCP;
  const OwnedInfo i = look_up("127.0.0.1", "7471", &hints);
  ASSERT_NE(i, nullptr);
  EXPECT_EQ(i->ai_family, AF_INET);
  EXPECT_EQ(i->ai_qp_type, IBV_QPT_RC);
  EXPECT_EQ(i->ai_port_space, RDMA_PS_TCP);
  ASSERT_EQ(i->ai_dst_len, sizeof(sockaddr_in));
  EXPECT_EQ(reinterpret_cast<sockaddr_in*>(i->ai_dst_addr)->sin_port, htons(7471));
  ASSERT_EQ(i->ai_src_len, sizeof(sockaddr_in)) << "as the route has it";
  EXPECT_EQ(reinterpret_cast<sockaddr_in*>(i->ai_src_addr)->sin_addr.s_addr,
            htonl(INADDR_LOOPBACK));
  EXPECT_EQ(i->ai_next, nullptr);
}

TEST_F(CmAddrinfo, AddressInfoForAServer) {
  rdma_addrinfo hints{};
  hints.ai_flags = RAI_PASSIVE;
  hints.ai_port_space = RDMA_PS_TCP;
  hints.ai_family = AF_INET;
  const OwnedInfo i = look_up(nullptr, "7471", &hints);
  ASSERT_NE(i, nullptr);
  EXPECT_EQ(i->ai_flags & RAI_PASSIVE, RAI_PASSIVE);
  EXPECT_EQ(i->ai_dst_len, 0U);
  ASSERT_EQ(i->ai_src_len, sizeof(sockaddr_in));
  EXPECT_EQ(reinterpret_cast<sockaddr_in*>(i->ai_src_addr)->sin_addr.s_addr, htonl(INADDR_ANY));
}

TEST_F(CmAddrinfo, AddressInfoRepeatsWhatTheHintsSay) {
  sockaddr_in from = loopback();
  sockaddr_in to = loopback(1234);
  rdma_addrinfo hints{};
  hints.ai_qp_type = IBV_QPT_RC;
  hints.ai_port_space = RDMA_PS_TCP;
  hints.ai_src_addr = any_of(from);
  hints.ai_src_len = sizeof from;
  hints.ai_dst_addr = any_of(to);
  hints.ai_dst_len = sizeof to;
  const OwnedInfo i = look_up(nullptr, nullptr, &hints);
  ASSERT_NE(i, nullptr);
  EXPECT_EQ(memcmp(i->ai_src_addr, &from, sizeof from), 0);
  EXPECT_EQ(memcmp(i->ai_dst_addr, &to, sizeof to), 0);
}

TEST_F(CmAddrinfo, AddressInfoSaysNo) {
  rdma_addrinfo* i = nullptr;
  EXPECT_ERRNO(EINVAL, rdma_getaddrinfo(nullptr, nullptr, nullptr, &i));
  rdma_addrinfo hints{};
  hints.ai_flags = RAI_NUMERICHOST;
  EXPECT_EQ(rdma_getaddrinfo("not-a-number", nullptr, &hints, &i), EAI_NONAME);
  hints.ai_flags = RAI_FAMILY | RAI_NUMERICHOST;
  hints.ai_family = AF_IB;
  EXPECT_EQ(rdma_getaddrinfo("fe80::1", nullptr, &hints, &i), EAI_FAMILY);
  hints = {};
  hints.ai_flags = RAI_NOROUTE;
  hints.ai_port_space = RDMA_PS_TCP;
  EXPECT_EQ(look_up("127.0.0.1", "1", &hints)->ai_src_len, 0U);
}

}  // namespace
}  // namespace weft::test
