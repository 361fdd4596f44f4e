// Memory that both ends of one host would share: who asks, who offers, and what the other one makes
// of it (spec/same-host 2.1).

#include "tests/unit/mpa/startup_fixture.h"

namespace weft::mpa {
namespace {

using wire::HostOffer;

const HostOffer kHost{.pid = 4711,
                      .descriptor = 1030,
                      .network_namespace = 0x0102030405060708,
                      .address = 0x7f0011223344,
                      .nonce = {std::byte{0xa1}, std::byte{0xb2}, std::byte{0xc3}}};
const Offer kOffer{.ird = 4, .ord = 4};

bool equal(const HostOffer& a, const HostOffer& b) {
  return a.pid == b.pid && a.descriptor == b.descriptor &&
         a.network_namespace == b.network_namespace && a.address == b.address && a.nonce == b.nonce;
}

constexpr Wants kWanted{.same_host = true};

MpaStart start_of(const Offer& offer, bool wanted) {
  return mpa::start_of(offer, wanted ? kWanted : Wants{});
}

Responder asked(bool wanted, const Offer& offer = kOffer) {
  return mpa::asked(offer, wanted ? kWanted : Wants{});
}

TEST(SameHost, IsAskedForWithTheExtensionAlone) {
  EXPECT_TRUE(start_of(kOffer, true).host_requested);
  EXPECT_FALSE(start_of(kOffer, false).host_requested);
  EXPECT_FALSE(start_of({.extension = false}, true).host_requested);
  EXPECT_FALSE(start_of({.revision = 1}, true).host_requested);
}

TEST(SameHost, IsOfferedWhereItWasAskedForAndFits) {
  EXPECT_TRUE(asked(true).may_offer_host(kOffer, 0));
  EXPECT_FALSE(asked(false).may_offer_host(kOffer, 0));
  EXPECT_FALSE(asked(true, {.extension = false}).may_offer_host(kOffer, 0));
  EXPECT_FALSE(asked(true).may_offer_host({.extension = false}, 0));
  // "A Responder with more than 460 bytes of private data MUST NOT offer."
  EXPECT_TRUE(asked(true).may_offer_host(kOffer, 460));
  EXPECT_FALSE(asked(true).may_offer_host(kOffer, 461));
}

// FPDUs in memory have a form without markers (spec/same-host 3.5).
TEST(SameHost, IsNotForAStreamWithMarkers) {
  constexpr std::byte kMarkers{0x80};  // RFC 5044 section 7.1
  Initiator i(kOffer);
  Buffer request = i.request({}, true);
  request[16] |= kMarkers;
  Responder r;
  Bytes in{request};
  ASSERT_TRUE(r.received(in).ok());
  EXPECT_FALSE(r.may_offer_host(kOffer, 0));

  Buffer reply = asked(true).accept(kOffer, {}, kHost).bytes;
  reply[16] |= kMarkers;
  Bytes back{reply};
  const auto o = i.received(back);
  ASSERT_TRUE(o && o->accepted);
  EXPECT_TRUE(o->host_offered) << "it has to be answered";
  EXPECT_FALSE(o->host);
}

TEST(SameHost, TheOfferComesBeforeThePrivateData) {
  Initiator i(kOffer);
  (void)i.request({}, true);
  const Buffer own = pattern(460, 3);
  const auto reply = asked(true).accept(kOffer, own, kHost);
  EXPECT_EQ(reply.bytes.size(), MpaStart::kSize + MpaStart::kMaxPrivateData);
  Bytes b{reply.bytes};
  const auto o = i.received(b);
  ASSERT_TRUE(o && o->accepted && o->host_offered && o->host);
  EXPECT_TRUE(equal(*o->host, kHost));
  EXPECT_EQ(o->accepted->private_data, own);
}

TEST(SameHost, EveryFieldHasItsPlace) {
  const auto reply = asked(true).accept(kOffer, {}, kHost);
  const Buffer block(reply.bytes.begin() + MpaStart::kSize + MpaEnhanced::kSize, reply.bytes.end());
  EXPECT_EQ(to_hex(block),
            to_hex(from_hex("0003 0000 00001267 00000406 00000000 0102030405060708 00007f0011223344"
                            "a1b2c300000000000000000000000000")));
}

TEST(SameHost, WhatWasNotAskedForIsNoOffer) {
  Initiator i(kOffer);
  (void)i.request({}, false);
  const auto reply = asked(true).accept(kOffer, {}, kHost);
  Bytes b{reply.bytes};
  const auto o = i.received(b);
  ASSERT_TRUE(o && o->accepted);
  EXPECT_FALSE(o->host_offered);
  EXPECT_FALSE(o->host);
}

TEST(SameHost, AnOfferOfAnotherVersionIsToBeDeclined) {
  Initiator i(kOffer);
  (void)i.request({}, true);
  auto reply = asked(true).accept(kOffer, {}, kHost);
  reply.bytes[MpaStart::kSize + MpaEnhanced::kSize + 1] = std::byte{1};
  Bytes b{reply.bytes};
  const auto o = i.received(b);
  ASSERT_TRUE(o && o->accepted);
  EXPECT_TRUE(o->host_offered) << "so that it is answered";
  EXPECT_FALSE(o->host);
}

TEST(SameHost, AnOfferThatIsCutOffIsAWrongFrame) {
  for (const size_t have : {0, 1, 47}) {
    Initiator i(kOffer);
    (void)i.request({}, true);
    auto reply = asked(true).accept(kOffer, {}, kHost);
    reply.bytes.resize(MpaStart::kSize + MpaEnhanced::kSize + have);
    store_be(reply.bytes.data() + 18, static_cast<uint16_t>(MpaEnhanced::kSize + have));
    Bytes b{reply.bytes};
    const auto o = i.received(b);
    ASSERT_TRUE(o && o->refused) << have;
    EXPECT_EQ(o->refused->frame, FrameReader::Error::enhanced_block_missing);
  }
}

TEST(SameHost, IsOfferedAlsoWhereTheReplyCannotBeLivedWith) {
  Initiator i({.ird = 1, .ord = 1});
  (void)i.request({}, true);
  auto reply = asked(true).accept({.ird = 1, .ord = 1}, {}, kHost);
  MpaEnhanced{.ird = 1, .ord = 1000}.encode(reply.bytes.data() + MpaStart::kSize);
  Bytes b{reply.bytes};
  const auto o = i.received(b);
  ASSERT_TRUE(o && o->refused);
  EXPECT_TRUE(o->host_offered) << "the Responder waits for an answer before the Terminate";
}

}  // namespace
}  // namespace weft::mpa
