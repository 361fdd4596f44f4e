#include <gtest/gtest.h>

#include <set>

#include "tests/support/spec_example.h"
#include "wire/wdp_ctl.h"

namespace weft::wire {
namespace {

TEST(WdpCtlText, Request) {
  EXPECT_EQ(WdpCtl::parse(test::example("E13"))->to_string(),
            "REQ attempt 0: from 9 to 0 token 0x00000000 own 0xa1b2c3d4 QPN 0xc35009 to 0x000000 "
            "XID 0x5eed0001 UC IRD 4 ORD 4 max 1472 first PSN 4096 features 0x1f cookie "
            "0x0000000000000000, 2 bytes private data, 0 bytes TLVs, 256 bytes in all");
}

TEST(WdpCtlText, WhatEachTypeSaysOfItsOwn) {
  WdpCtl c;
  c.reason = 2;
  c.ib_style = true;
  c.max_payload = 1472;
  c.highest_psn = Psn{77};
  c.received = 60;
  c.duplicates = 5;
  struct Row {
    CtlType type;
    const char* text;
  };
  const Row rows[] = {
      {CtlType::rep, "XID 0x00000000 unknown service IB-style IRD"},
      {CtlType::rtu, "XID 0x00000000, 0 bytes"},
      {CtlType::rej, "XID 0x00000000: refused by the application (2), "},
      {CtlType::cookie, " cookie 0x0000000000000000, "},
      {CtlType::wait, "XID 0x00000000 2 ms, "},
      {CtlType::dreq, "XID 0x00000000 reason 2, highest PSN 77, "},
      {CtlType::drep, "XID 0x00000000, 0 bytes"},
      {CtlType::ka, "XID 0x00000000 highest PSN 77, "},
      {CtlType::kaa, "XID 0x00000000 highest PSN 77, 60 received, 5 duplicates, "},
      {CtlType::probe, "XID 0x00000000, 0 bytes"},
      {CtlType::probea, "XID 0x00000000 of 1472 bytes, "},
      {CtlType::err, "XID 0x00000000: RDMAP error type 0 code 0x02, "},
  };
  for (const Row& r : rows) {
    c.type = r.type;
    const std::string text = c.to_string();
    EXPECT_EQ(text.find(to_string(r.type)), 0U) << text;
    EXPECT_NE(text.find(r.text), std::string::npos) << text;
  }
}

TEST(WdpCtlText, NumbersHaveNames) {
  std::set<std::string> types;
  for (uint8_t t = 0; t <= 13; ++t) types.insert(to_string(static_cast<CtlType>(t)));
  EXPECT_EQ(types.size(), 14U);
  std::set<std::string> services;
  for (uint8_t s = 0; s <= 4; ++s) services.insert(to_string(static_cast<CtlService>(s)));
  EXPECT_EQ(services.size(), 5U);
  std::set<std::string> reasons;
  for (uint32_t r = 0; r <= 10; ++r) reasons.insert(to_string(static_cast<RejReason>(r)));
  EXPECT_EQ(reasons.size(), 11U);
  EXPECT_STREQ(to_string(CtlType{14}), "unknown type");
  EXPECT_STREQ(to_string(CtlService{255}), "unknown service");
  EXPECT_STREQ(to_string(RejReason{0xffffffff}), "unknown reason");
}

TEST(WdpCtlText, ReasonsOfTheSpecification) {
  // "1 no listener, 2 application, 3 version, 4 service mismatch, 5 no resources, 6 bad parameters,
  // 7 critical TLV, 8 not ready (retry), 9 role conflict, 10 QPN unknown"
  const RejReason reasons[] = {RejReason::no_listener,   RejReason::application,
                               RejReason::version,       RejReason::service_mismatch,
                               RejReason::no_resources,  RejReason::bad_parameters,
                               RejReason::critical_tlv,  RejReason::not_ready,
                               RejReason::role_conflict, RejReason::qpn_unknown};
  uint32_t number = 1;
  for (const RejReason r : reasons) EXPECT_EQ(static_cast<uint32_t>(r), number++);
  EXPECT_EQ(std::size(reasons), kRejReasons);
  EXPECT_STREQ(counter_name(RejReason::no_listener), "no_listener");
  EXPECT_STREQ(counter_name(RejReason::no_resources), "no_resources");
  EXPECT_STREQ(counter_name(RejReason::not_ready), "not_ready");
  EXPECT_STREQ(counter_name(RejReason::qpn_unknown), "qpn_unknown");
  for (const uint32_t none : {0U, 11U, ~0U}) {
    EXPECT_STREQ(counter_name(static_cast<RejReason>(none)), "?") << none;
  }
}

}  // namespace
}  // namespace weft::wire
