#include "wdp/rd_datagram.h"

#include <gtest/gtest.h>

#include "tests/support/pattern.h"
#include "wire/wdp_crc.h"

namespace weft::wdp {
namespace {

using test::Buffer;
using wire::Opcode;
using wire::WdpAck;
using wire::WdpBundle;
using wire::WdpClass;
using wire::WdpCommon;
using wire::WdpData;
using wire::WdpDrop;

constexpr RdTerms kAll{.crc = false, .responses = true};

// A request of a queue pair of type RD.
WdpData request(uint32_t bytes = 20) {
  return {.wdp_class = WdpClass::rd,
          .didx = 5,
          .sidx = 3,
          .psn = Csn{100},
          .msn = Msn{1},
          .mlen = bytes,
          .last = true,
          .wants_response = true,
          .opcode = Opcode::send,
          .stride = static_cast<uint16_t>(bytes)};
}
WdpData resp(size_t records = 1) {
  WdpData d = request(static_cast<uint32_t>(12 * records));
  d.didx = d.sidx = wire::kPortIndex;
  d.wants_response = false;
  d.opcode = Opcode::terminate;
  return d;
}
Buffer encoded(const WdpData& d) {
  Buffer bytes = test::pattern_bytes(WdpData::kSize + d.payload_size(), 7);
  d.encode(bytes.data());
  return bytes;
}
Buffer encoded(const WdpAck& ack) {
  Buffer bytes(ack.size());
  ack.encode(bytes.data());
  return bytes;
}
Buffer bundle(std::initializer_list<Buffer> parts) {
  Buffer bytes(WdpBundle::kSize);
  WdpCommon{.wdp_class = WdpBundle::kClass, .class_word = 200}.encode(bytes.data());
  for (const Buffer& part : parts) {
    const size_t before = bytes.size();
    bytes.resize(before + WdpBundle::kFrame);
    WdpBundle::frame(bytes.data() + before, part.size());
    bytes.insert(bytes.end(), part.begin(), part.end());
  }
  return bytes;
}
Buffer sealed(Buffer bytes) {
  bytes[1] = (bytes[1] & std::byte{0xf0}) | std::byte{wire::WdpFlags{.crc = true}.bits()};
  wire::seal_wdp(bytes);
  return bytes;
}

// Why it is dropped; none: it is right.
std::optional<WdpDrop> fault(const Buffer& bytes, const RdTerms& terms = kAll) {
  const WdpCommon common = *WdpCommon::parse(bytes);
  RdDatagram d{common, bytes};
  const auto v = d.check(terms);
  return v.ok() ? std::nullopt : std::optional{v.error()};
}

TEST(RdDatagram, OneMessage) {
  const Buffer bytes = encoded(request());
  const WdpCommon common = *WdpCommon::parse(bytes);
  RdDatagram d{common, bytes};
  ASSERT_TRUE(d.check(kAll).ok());
  EXPECT_EQ(d.csn(), Csn{100});
  EXPECT_EQ(d.content(), 20U);
  EXPECT_EQ(d.weight(), bytes.size() + kDatagramOverhead);
  EXPECT_TRUE(d.wants_response());
  EXPECT_FALSE(d.ack());
  int messages = 0;
  d.each_message([&](const WdpData& m, Bytes payload) {
    ++messages;
    EXPECT_EQ(m.didx, 5);
    EXPECT_EQ(payload.data(), bytes.data() + WdpData::kSize);
    EXPECT_EQ(payload.size(), 20U);
  });
  EXPECT_EQ(messages, 1);
}

TEST(RdDatagram, ABundleAndTheAcknowledgementBehindIt) {
  const Buffer bytes =
      bundle({encoded(resp(2)), encoded(request(30)), encoded(WdpAck{.cum = Csn{77}})});
  const WdpCommon common = *WdpCommon::parse(bytes);
  RdDatagram d{common, bytes};
  ASSERT_TRUE(d.check(kAll).ok());
  EXPECT_EQ(d.csn(), Csn{200});
  EXPECT_EQ(d.content(), bytes.size() - WdpBundle::kSize);
  const size_t parts = 2 * (WdpBundle::kFrame + WdpData::kSize + kDatagramOverhead) + 24 + 30;
  EXPECT_EQ(d.weight(), WdpBundle::kSize + parts) << "the RDACK is no part of what is repeated";
  EXPECT_TRUE(d.wants_response());
  ASSERT_TRUE(d.ack());
  EXPECT_EQ(d.ack()->cum, Csn{77});
  std::vector<size_t> payloads;
  d.each_message([&](const WdpData&, Bytes payload) { payloads.push_back(payload.size()); });
  EXPECT_EQ(payloads, (std::vector<size_t>{24, 30}));
}

// An RDACK tells their sender that they are complete; those of type RD get a RESP.
TEST(RdDatagram, CountsTheMessagesOfUd) {
  WdpData ud = request();
  ud.wants_response = false;
  const auto of_ud = [](const Buffer& bytes) {
    const WdpCommon common = *WdpCommon::parse(bytes);
    RdDatagram d{common, bytes};
    EXPECT_TRUE(d.check(kAll).ok());
    return d.messages_of_ud();
  };
  EXPECT_EQ(of_ud(encoded(ud)), 1U);
  EXPECT_EQ(of_ud(encoded(request())), 0U);
  EXPECT_EQ(of_ud(bundle({encoded(ud), encoded(request()), encoded(ud), encoded(resp())})), 2U);
}

// The first one is kept as it was checked, and the others are read anew.
TEST(RdDatagram, EachMessageOfABundleOnceAndInOrder) {
  std::vector<Buffer> parts;
  for (uint32_t length : {9, 1, 200, 9}) parts.push_back(encoded(request(length)));
  for (size_t i = 0; i < parts.size(); ++i) store_be(parts[i].data() + 16, uint32_t(40 + i));
  const Buffer bytes = bundle({parts[0], parts[1], parts[2], parts[3]});
  const WdpCommon common = *WdpCommon::parse(bytes);
  RdDatagram d{common, bytes};
  ASSERT_TRUE(d.check(kAll).ok());
  size_t i = 0;
  d.each_message([&](const WdpData& m, Bytes payload) {
    ASSERT_LT(i, parts.size());
    EXPECT_EQ(m, *WdpData::parse(parts[i]));
    const Buffer behind{parts[i].begin() + WdpData::kSize, parts[i].end()};
    EXPECT_EQ(Buffer(payload.begin(), payload.end()), behind);
    ++i;
  });
  EXPECT_EQ(i, parts.size());
}

TEST(RdDatagram, AnAcknowledgementAloneIsNoMessage) {
  const Buffer bytes = bundle({encoded(WdpAck{.cum = Csn{5}})});
  const WdpCommon common = *WdpCommon::parse(bytes);
  RdDatagram d{common, bytes};
  ASSERT_TRUE(d.check(kAll).ok());
  ASSERT_TRUE(d.ack());
  EXPECT_EQ(d.ack()->cum, Csn{5});
  d.each_message([](const WdpData&, Bytes) { ADD_FAILURE(); });
}

TEST(RdDatagram, ResponsesAreWantedByRequestsAlone) {
  for (const Buffer& bytes : {encoded(resp()), bundle({encoded(resp())})}) {
    const WdpCommon common = *WdpCommon::parse(bytes);
    RdDatagram d{common, bytes};
    ASSERT_TRUE(d.check(kAll).ok());
    EXPECT_FALSE(d.wants_response());
  }
}

TEST(RdDatagram, TheCrcIsLookedAtWhereverThereIsOne) {
  for (const Buffer& good : {encoded(request()), bundle({encoded(request())})}) {
    EXPECT_EQ(fault(good, {.crc = true, .responses = true}), WdpDrop::crc_missing);
    EXPECT_EQ(fault(sealed(good)), std::nullopt);
    EXPECT_EQ(fault(sealed(good), {.crc = true, .responses = true}), std::nullopt);
    Buffer bad = sealed(good);
    bad.back() ^= std::byte{1};
    EXPECT_EQ(fault(bad), WdpDrop::bad_crc);
  }
}

TEST(RdDatagram, WithoutResponsesThereIsUdAlone) {
  constexpr RdTerms kUd{};
  WdpData ud = request();
  ud.wants_response = false;
  EXPECT_EQ(fault(encoded(ud), kUd), std::nullopt);
  EXPECT_EQ(fault(encoded(request()), kUd), WdpDrop::bad_opcode);
  EXPECT_EQ(fault(bundle({encoded(ud)}), kUd), WdpDrop::unknown_class);
}

TEST(RdDatagram, WhatIsRightAloneMayBeWrongOnAChannel) {
  const auto with = [](auto change) {
    WdpData d = request();
    change(d);
    return encoded(d);
  };
  const auto faults = [&](auto change) {
    const Buffer bytes = with(change);
    const auto v = fault(bytes);
    EXPECT_EQ(fault(bundle({encoded(request()), bytes})), v) << "in a bundle as well";
    return v;
  };
  EXPECT_EQ(faults([](WdpData& d) { d.didx = wire::kPortIndex; }), WdpDrop::index_mismatch);
  EXPECT_EQ(faults([](WdpData& d) { d.sidx = wire::kMulticastIndex; }), WdpDrop::index_mismatch);
  EXPECT_EQ(faults([](WdpData& d) {
              d.opcode = Opcode::write;
              d.wants_response = false;
            }),
            WdpDrop::bad_opcode)
      << "nobody would answer it";
  EXPECT_EQ(faults([](WdpData& d) {
              d.wants_response = d.last = false;
              d.mlen = 40;
            }),
            WdpDrop::too_many_segments)
      << "UD has one";
  EXPECT_EQ(faults([](WdpData& d) {
              d.last = false;
              d.mlen = 0xfffffff0;
            }),
            WdpDrop::message_length);
  EXPECT_EQ(faults([](WdpData& d) {
              d = resp();
              d.wants_response = true;
            }),
            WdpDrop::bad_opcode);
}

TEST(RdDatagram, OfABundleThatHasAFaultNothingIsRight) {
  Buffer bytes = bundle({encoded(request()), encoded(request())});
  bytes.pop_back();
  EXPECT_EQ(fault(bytes), WdpDrop::length_mismatch);
  EXPECT_TRUE(fault(bundle({})));
}

}  // namespace
}  // namespace weft::wdp
