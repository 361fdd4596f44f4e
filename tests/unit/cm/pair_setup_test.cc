#include "cm/pair_setup.h"

#include <gtest/gtest.h>

#include "device/device.h"

namespace weft::cm {
namespace {

using verbs::QpState;

PairSetup known() {
  PairSetup s{.parameters = {.responder_resources = 3, .initiator_depth = 5, .retry_count = 200}};
  s.to_peer = {.global = true, .dgid = Gid::from_ipv4(0xc0000207), .port = device::kPort};
  s.path_mtu = 4;
  return s;
}

// ibv_modify_qp takes them as they are, whatever the type.
TEST(PairSetup, WhatEachTypeHasToHaveSet) {
  for (const verbs::QpTypeTraits& type : verbs::qp_types()) {
    SCOPED_TRACE(type.name);
    for (const auto& [from, to] : {std::pair{QpState::reset, QpState::init},
                                   {QpState::init, QpState::rtr},
                                   {QpState::rtr, QpState::rts}}) {
      verbs::QpAttributes a;
      uint32_t mask = 0;
      fill_attributes(known(), to, type, a, mask);
      EXPECT_EQ(a.state, to);
      EXPECT_NE(mask & verbs::qp_mask::kState, 0U);
      EXPECT_TRUE(type.allows(from, to, mask)) << static_cast<int>(to);
    }
  }
}

TEST(PairSetup, WhatIsKnownOfTheConnection) {
  const verbs::QpTypeTraits& rc = *verbs::find_type(verbs::QpType::rc);
  verbs::QpAttributes a;
  uint32_t mask = 0;
  fill_attributes(known(), QpState::rtr, rc, a, mask);
  EXPECT_EQ(a.av.dgid, Gid::from_ipv4(0xc0000207));
  EXPECT_EQ(a.path_mtu, 4);
  EXPECT_EQ(a.max_dest_rd_atomic, 3);
  EXPECT_EQ(a.dest_qpn, Qpn{}) << "the bring-up by number leaves it alone";
  fill_attributes(known(), QpState::rts, rc, a, mask);
  EXPECT_EQ(a.max_rd_atomic, 5);
  EXPECT_EQ(a.retry_cnt, 7) << "three bits";
  EXPECT_EQ(a.timeout, 18) << "rdma_cm's, where the program says nothing";
  EXPECT_EQ(a.rnr_retry, 7);
  PairSetup patient = known();
  patient.ack_timeout = 20;
  fill_attributes(patient, QpState::rts, rc, a, mask);
  EXPECT_EQ(a.timeout, 20);
}

}  // namespace
}  // namespace weft::cm
