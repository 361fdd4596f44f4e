#include "verbs/qp_attributes.h"

#include "device/device.h"
#include "tests/unit/verbs/pair_fixture.h"

namespace weft::verbs {
namespace {

using namespace qp_mask;

struct QpAttributesTest : PairTest {
  bool possible(const QpAttributes& a, uint32_t mask) {
    const auto checked = check_attributes(*qp, a, mask);
    if (checked.ok()) return true;
    EXPECT_EQ(checked.error(), Errc::invalid);
    return false;
  }
  std::unique_ptr<QueuePair> qp = make();
};

// Each number at its limit, and one beyond. What the mask does not name is not looked at.
TEST_F(QpAttributesTest, EachNumberHasItsRange) {
  const auto range = [&](uint32_t bit, auto member, uint64_t least, uint64_t most) {
    SCOPED_TRACE(bit);
    using Value = std::remove_reference_t<decltype(QpAttributes{}.*member)>;
    QpAttributes a;
    a.*member = static_cast<Value>(least);
    EXPECT_TRUE(possible(a, bit));
    a.*member = static_cast<Value>(most);
    EXPECT_TRUE(possible(a, bit));
    a.*member = static_cast<Value>(most + 1);
    EXPECT_FALSE(possible(a, bit));
    EXPECT_TRUE(possible(a, kState));
    if (least == 0) return;
    a.*member = static_cast<Value>(least - 1);
    EXPECT_FALSE(possible(a, bit));
  };
  range(kPort, &QpAttributes::port, device::kPort, device::kPort);
  range(kPkeyIndex, &QpAttributes::pkey_index, 0, 0);
  range(kPathMtu, &QpAttributes::path_mtu, 1, 5);
  range(kMaxQpRdAtomic, &QpAttributes::max_rd_atomic, 0, device::kMaxReads);
  range(kMaxDestRdAtomic, &QpAttributes::max_dest_rd_atomic, 0, device::kMaxReads);
  range(kTimeout, &QpAttributes::timeout, 0, 31);
  range(kRetryCnt, &QpAttributes::retry_cnt, 0, 7);
  range(kRnrRetry, &QpAttributes::rnr_retry, 0, 7);
  range(kMinRnrTimer, &QpAttributes::min_rnr_timer, 0, 31);
  EXPECT_TRUE(possible({.dest_qpn = Qpn{0xffffff}}, kDestQpn));
  EXPECT_FALSE(possible({.dest_qpn = Qpn{0x1000000}}, kDestQpn));
}

TEST_F(QpAttributesTest, RightsThatNobodyKnowsAreNone) {
  EXPECT_TRUE(possible({.access = access::kRemoteWrite | access::kFlushGlobal}, kAccess));
  EXPECT_TRUE(possible({.access = access::kOptionalRange}, kAccess))
      << "optional ones may be unknown";
  const uint32_t of_regions = access::kZeroBased | access::kOnDemand | access::kHugeTlb;
  EXPECT_TRUE(possible({.access = of_regions}, kAccess)) << "they say nothing of a queue pair";
  EXPECT_FALSE(possible({.access = 1U << 10}, kAccess));
}

TEST_F(QpAttributesTest, ThereIsOnePath) {
  EXPECT_FALSE(possible({}, kAltPath));
  EXPECT_TRUE(possible({.path_mig_state = 0}, kPathMigState));
  EXPECT_FALSE(possible({.path_mig_state = 1}, kPathMigState));
}

TEST_F(QpAttributesTest, AnAddressVectorLeadsSomewhereFromHere) {
  const auto leads = [&](const AddressVector& av, Qpn peer = Qpn{5}) {
    return possible({.dest_qpn = peer, .av = av}, kAv | kDestQpn);
  };
  const AddressVector there{.global = true, .dgid = kHere, .port = device::kPort};
  EXPECT_TRUE(leads(there));
  AddressVector av = there;
  av.port = device::kPort + 1;
  EXPECT_FALSE(leads(av));
  av = there;
  av.sgid_index = 1;
  EXPECT_FALSE(leads(av)) << "the table has one address";
  av = {.port = device::kPort};
  EXPECT_FALSE(leads(av)) << "neither GID nor LID";
  av = there;
  av.dgid = Gid{};
  av.dgid.raw[0] = 0xfd;
  EXPECT_FALSE(leads(av)) << "from IPv4 to IPv6";
  EXPECT_TRUE(leads(av, Qpn{})) << "rdma_cm connects, from any address";
}

// A LID is a part of an IPv4 address, also where the table begins with another one.
TEST_F(QpAttributesTest, ALidLeadsFromAnIpv4Address) {
  device::Device two = one_address();
  device::GidEntry v6{.gid = {}, .interface = "lo"};
  v6.gid.raw[0] = 0xfd;
  two.gids.insert(two.gids.begin(), v6);
  Context there{adapter(), two};
  ProtectionDomain its{there};
  QpInit init{.context = &there,
              .pd = &its,
              .send_cq = &cq,
              .recv_cq = &cq,
              .type = QpType::rc,
              .limits = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};
  auto made = QueuePair::create(init);
  ASSERT_TRUE(made.ok());
  const AddressVector by_lid{.dlid = 1, .port = device::kPort};
  EXPECT_TRUE(check_attributes(**made, {.dest_qpn = Qpn{5}, .av = by_lid}, kAv | kDestQpn).ok());
}

TEST_F(QpAttributesTest, WhatTheMaskNamesIsStored) {
  const QpAttributes asked{.state = QpState::rts,
                           .path_mtu = 3,
                           .path_mig_state = 1,
                           .qkey = 11,
                           .rq_psn = 0xff123456,
                           .sq_psn = 0xffabcdef,
                           .dest_qpn = Qpn{7},
                           .access = 2,
                           .av = {.dlid = 9},
                           .pkey_index = 4,
                           .port = 1,
                           .timeout = 5,
                           .retry_cnt = 6,
                           .rnr_retry = 3,
                           .min_rnr_timer = 12,
                           .max_rd_atomic = 8,
                           .max_dest_rd_atomic = 10,
                           .en_sqd_async_notify = true};
  QpAttributes a;
  store_attributes(a, asked, kState);
  EXPECT_EQ(a.state, QpState::reset) << "the state is the queue pair's to set";
  EXPECT_EQ(a.qkey, 0U);
  store_attributes(a, asked, kTimeout | kSqPsn);
  EXPECT_EQ(a.timeout, 5);
  EXPECT_EQ(a.sq_psn, 0xabcdefU) << "24 bits";
  EXPECT_EQ(a.rq_psn, 0U);
  EXPECT_EQ(a.retry_cnt, 0);
  store_attributes(a, asked, ~0U);
  EXPECT_EQ(a.rq_psn, 0x123456U);
  EXPECT_EQ(a.path_mtu, 3);
  EXPECT_EQ(a.path_mig_state, 1);
  EXPECT_EQ(a.qkey, 11U);
  EXPECT_EQ(a.dest_qpn, Qpn{7});
  EXPECT_EQ(a.access, 2U);
  EXPECT_EQ(a.av.dlid, 9);
  EXPECT_EQ(a.pkey_index, 4);
  EXPECT_EQ(a.port, 1);
  EXPECT_EQ(a.retry_cnt, 6);
  EXPECT_EQ(a.rnr_retry, 3);
  EXPECT_EQ(a.min_rnr_timer, 12);
  EXPECT_EQ(a.max_rd_atomic, 8);
  EXPECT_EQ(a.max_dest_rd_atomic, 10);
  EXPECT_TRUE(a.en_sqd_async_notify);
}

}  // namespace
}  // namespace weft::verbs
