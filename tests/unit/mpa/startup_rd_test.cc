// RC that would go by datagrams: who asks, who offers, and what the other one makes of it
// (spec/wdp-rd 7.1).

#include "tests/unit/mpa/startup_fixture.h"

namespace weft::mpa {
namespace {

using wire::RdOffer;

const RdOffer kRd{.qpn = Qpn{0x9c4003}, .session = 0xa1b2c3d4};
const Offer kOffer{.ird = 4, .ord = 4};

constexpr Wants kWanted{.rd = true};

MpaStart start_of(const Offer& offer, bool wanted) {
  return mpa::start_of(offer, wanted ? kWanted : Wants{});
}

Responder asked(bool wanted, const Offer& offer = kOffer) {
  return mpa::asked(offer, wanted ? kWanted : Wants{});
}

TEST(ByDatagrams, IsAskedForWithTheExtensionAlone) {
  EXPECT_TRUE(start_of(kOffer, true).rd_requested);
  EXPECT_FALSE(start_of(kOffer, true).host_requested);
  EXPECT_FALSE(start_of(kOffer, false).rd_requested);
  EXPECT_FALSE(start_of({.extension = false}, true).rd_requested);
  EXPECT_FALSE(start_of({.revision = 1}, true).rd_requested);
}

TEST(ByDatagrams, IsOfferedWhereItWasAskedForAndFits) {
  EXPECT_TRUE(asked(true).may_offer_rd(kOffer, 0));
  EXPECT_FALSE(asked(false).may_offer_rd(kOffer, 0));
  EXPECT_FALSE(asked(true, {.extension = false}).may_offer_rd(kOffer, 0));
  EXPECT_FALSE(asked(true).may_offer_rd({.extension = false}, 0));
  // "A Responder with more than 496 bytes of private data MUST NOT offer."
  EXPECT_TRUE(asked(true).may_offer_rd(kOffer, 496));
  EXPECT_FALSE(asked(true).may_offer_rd(kOffer, 497));
}

TEST(ByDatagrams, TheOfferComesBeforeThePrivateData) {
  Initiator i(kOffer);
  (void)i.request({}, false, true);
  const Buffer own = pattern(496, 3);
  const auto reply = asked(true).accept(kOffer, own, {}, kRd);
  EXPECT_EQ(reply.bytes.size(), MpaStart::kSize + MpaStart::kMaxPrivateData);
  Bytes b{reply.bytes};
  const auto o = i.received(b);
  ASSERT_TRUE(o && o->accepted && o->rd_offered && o->rd);
  EXPECT_EQ(*o->rd, kRd);
  EXPECT_EQ(o->accepted->private_data, own);
}

TEST(ByDatagrams, EveryFieldHasItsPlace) {
  const auto reply = asked(true).accept(kOffer, {}, {}, kRd);
  const Buffer block(reply.bytes.begin() + MpaStart::kSize + MpaEnhanced::kSize, reply.bytes.end());
  EXPECT_EQ(to_hex(block), to_hex(from_hex("0001 0000 009c4003 a1b2c3d4")));
}

TEST(ByDatagrams, WhatWasNotAskedForIsNoOffer) {
  Initiator i(kOffer);
  (void)i.request({});
  const auto reply = asked(true).accept(kOffer, {}, {}, kRd);
  Bytes b{reply.bytes};
  const auto o = i.received(b);
  ASSERT_TRUE(o && o->accepted);
  EXPECT_FALSE(o->rd_offered);
  EXPECT_FALSE(o->rd);
}

// The port itself and groups are no queue pairs; nor is anything above 24 bits.
TEST(ByDatagrams, AnOfferThatCannotBeUnderstoodIsToBeDeclined) {
  const auto declined = [](size_t at, uint8_t value) {
    Initiator i(kOffer);
    (void)i.request({}, false, true);
    auto reply = asked(true).accept(kOffer, {}, {}, kRd);
    reply.bytes[MpaStart::kSize + MpaEnhanced::kSize + at] = std::byte{value};
    Bytes b{reply.bytes};
    const auto o = i.received(b);
    return o && o->accepted && o->rd_offered && !o->rd;
  };
  EXPECT_TRUE(declined(1, 2)) << "another version";
  EXPECT_TRUE(declined(4, 1)) << "more than 24 bits";
  EXPECT_TRUE(declined(7, 0)) << "the port itself";
  EXPECT_TRUE(declined(7, 255)) << "multicast";
  EXPECT_FALSE(declined(7, 254));
}

TEST(ByDatagrams, AnOfferThatIsCutOffIsAWrongFrame) {
  for (const size_t have : {0, 1, 11}) {
    Initiator i(kOffer);
    (void)i.request({}, false, true);
    auto reply = asked(true).accept(kOffer, {}, {}, kRd);
    reply.bytes.resize(MpaStart::kSize + MpaEnhanced::kSize + have);
    store_be(reply.bytes.data() + 18, static_cast<uint16_t>(MpaEnhanced::kSize + have));
    Bytes b{reply.bytes};
    const auto o = i.received(b);
    ASSERT_TRUE(o && o->refused) << have;
    EXPECT_EQ(o->refused->frame, FrameReader::Error::enhanced_block_missing);
  }
}

}  // namespace
}  // namespace weft::mpa
