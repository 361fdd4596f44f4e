// What an Initiator asks for, and what it makes of the Reply.

#include "tests/unit/mpa/startup_fixture.h"

namespace weft::mpa {
namespace {

TEST(Initiator, TheRequestSaysWhatIsOffered) {
  Initiator plain({.crc = true, .extension = false, .ird = 1, .ord = 1});
  EXPECT_EQ(to_hex(plain.request({})), to_hex(test::example("E2 Request")));

  for (int bits = 0; bits < 8; ++bits) {
    const Offer offer{.crc = (bits & 1) != 0,
                      .extension = (bits & 2) != 0,
                      .peer_to_peer = (bits & 4) != 0,
                      .ird = 7,
                      .ord = 9};
    const Parsed p = parsed(MpaStart::Kind::request, Initiator(offer).request(pattern(40, 1)));
    EXPECT_EQ(p.start.crc, offer.crc);
    EXPECT_EQ(p.start.extension_requested, offer.extension);
    EXPECT_FALSE(p.start.markers) << "weft wants no markers";
    EXPECT_FALSE(p.start.extension_accepted || p.start.rejected);
    ASSERT_TRUE(p.block);
    EXPECT_EQ(p.block->ird, 7);
    EXPECT_EQ(p.block->ord, 9);
    // spec/mpa 2.4: with A every RTR kind that it can send.
    EXPECT_EQ(p.block->peer_to_peer, offer.peer_to_peer);
    EXPECT_EQ(p.block->rtr_fpdu, offer.peer_to_peer);
    EXPECT_EQ(p.block->rtr_write, offer.peer_to_peer);
    EXPECT_EQ(p.block->rtr_read, offer.peer_to_peer);
    EXPECT_EQ(p.private_data, pattern(40, 1));
  }
}

TEST(Initiator, ARevision1RequestHasNoBlockAndNoExtension) {
  Initiator i({.revision = 1, .extension = true, .peer_to_peer = true});
  EXPECT_EQ(to_hex(i.request(from_text("hello weft"))), to_hex(test::example("E2 Rev 1 Request")));
}

TEST(Initiator, TheReplyInAnySplit) {
  const MpaEnhanced block{.ird = 3, .ord = 2};
  const Buffer reply = frame({.kind = MpaStart::Kind::reply, .crc = true}, &block, pattern(12, 5));
  const Buffer bytes = test::join({reply, pattern(20, 6)});
  for (size_t cut = 1; cut < reply.size(); ++cut) {
    Initiator i({.ird = 4, .ord = 4});
    EXPECT_FALSE(i.reply_started());
    Bytes one = Bytes{bytes}.first(cut);
    ASSERT_FALSE(i.received(one).has_value());
    EXPECT_TRUE(i.reply_started());
    Bytes two = Bytes{bytes}.subspan(cut);
    const auto o = i.received(two);
    ASSERT_TRUE(o && o->accepted);
    EXPECT_EQ(o->accepted->private_data, pattern(12, 5));
    EXPECT_EQ(two.size(), 20U) << "FPDUs may come with the Reply";
  }
}

// spec/mpa 2.3.1: CRC is on in both directions when one of the two asks for it.
TEST(Initiator, CrcIsOnWhenOneOfTheTwoWantsIt) {
  for (const bool own : {false, true}) {
    for (const bool peer : {false, true}) {
      const auto o = answered({.crc = own}, {.kind = MpaStart::Kind::reply, .crc = peer});
      ASSERT_TRUE(o.accepted);
      EXPECT_EQ(o.accepted->parameters.crc, own || peer);
    }
  }
}

TEST(Initiator, MarkersAreSentToAPeerThatAsksForThem) {
  EXPECT_TRUE(answered({}, {.kind = MpaStart::Kind::reply, .markers = true})
                  .accepted->parameters.send_markers);
  EXPECT_FALSE(answered({}, {.kind = MpaStart::Kind::reply}).accepted->parameters.send_markers);
}

// spec/mpa 2.7: siw echoes XR=1, XA=0, and so echoes of any kind prove nothing.
TEST(Initiator, TheExtensionNeedsXaAloneAndOwnRequest) {
  const auto agreed = [](bool offered, bool accepted, bool echoed, uint8_t revision = 2) {
    return answered({.revision = revision, .extension = offered}, {.kind = MpaStart::Kind::reply,
                                                                   .extension_accepted = accepted,
                                                                   .extension_requested = echoed,
                                                                   .revision = revision})
        .accepted->parameters.extension;
  };
  EXPECT_TRUE(agreed(true, true, false));
  EXPECT_FALSE(agreed(true, false, true)) << "siw's echo";
  EXPECT_FALSE(agreed(true, true, true));
  EXPECT_FALSE(agreed(false, true, false)) << "not asked for";
  EXPECT_FALSE(agreed(true, false, false));
  EXPECT_FALSE(agreed(true, true, false, 1)) << "a Request of revision 1 asks for nothing";
}

// RFC 6581 section 9.1, spec/mpa 2.3.3: final ORD = min(own, Reply's IRD); the IRD must hold the
// Reply's ORD.
TEST(Initiator, IrdAndOrdFollowTheReply) {
  const auto parameters = [](uint16_t ird, uint16_t ord, uint16_t their_ird, uint16_t their_ord) {
    const MpaEnhanced block{.ird = their_ird, .ord = their_ord};
    return answered({.ird = ird, .ord = ord}, {.kind = MpaStart::Kind::reply}, &block);
  };
  EXPECT_EQ(parameters(16, 16, 4, 2).accepted->parameters.ord, 4);
  EXPECT_EQ(parameters(16, 16, 4, 2).accepted->parameters.ird, 16);
  EXPECT_EQ(parameters(16, 3, 128, 2).accepted->parameters.ord, 3);
  EXPECT_EQ(parameters(16, 16, 0, 0).accepted->parameters.ord, 0);
  EXPECT_EQ(parameters(2, 16, 4, 100).accepted->parameters.ird, 100)
      << "raised, as the Responder wants";
  const auto too_many = parameters(16, 16, 4, 129);
  ASSERT_TRUE(too_many.refused && !too_many.accepted);
  EXPECT_EQ(too_many.refused->error, term::kMpaInsufficientIrd);
  // 0x3FFF: the ULP deals with it, so the own numbers stand.
  const auto left = parameters(5, 6, MpaEnhanced::kNotNegotiated, MpaEnhanced::kNotNegotiated);
  EXPECT_EQ(left.accepted->parameters.ird, 5);
  EXPECT_EQ(left.accepted->parameters.ord, 6);
}

TEST(Initiator, AReplyWithoutBlockLeavesTheOwnNumbers) {
  const auto o = answered({.ird = 5, .ord = 6}, {.kind = MpaStart::Kind::reply});
  EXPECT_EQ(o.accepted->parameters.ird, 5);
  EXPECT_EQ(o.accepted->parameters.ord, 6);
  EXPECT_FALSE(o.accepted->parameters.peer_to_peer);
}

// spec/mpa 2.4: every combination of the Reply's B, C and D.
TEST(Initiator, TheRtrKindIsTheRespondersChoice) {
  for (int bits = 0; bits < 8; ++bits) {
    const MpaEnhanced block{.peer_to_peer = true,
                            .rtr_fpdu = (bits & 1) != 0,
                            .rtr_write = (bits & 2) != 0,
                            .rtr_read = (bits & 4) != 0,
                            .ird = 1,
                            .ord = 1};
    const auto o = answered({.peer_to_peer = true}, {.kind = MpaStart::Kind::reply}, &block);
    if (bits == 0) {
      ASSERT_TRUE(o.refused);
      EXPECT_EQ(o.refused->error, term::kMpaNoMatchingRtr);
      continue;
    }
    ASSERT_TRUE(o.accepted) << bits;
    EXPECT_TRUE(o.accepted->parameters.peer_to_peer);
    EXPECT_EQ(o.accepted->parameters.rtr, block.rtr_write  ? Rtr::write
                                          : block.rtr_read ? Rtr::read
                                                           : Rtr::fpdu);
  }
}

TEST(Initiator, UnaskedPeerToPeerBitsAreIgnored) {
  const MpaEnhanced block{.peer_to_peer = true, .rtr_write = true, .ird = 1, .ord = 1};
  const auto o = answered({.peer_to_peer = false}, {.kind = MpaStart::Kind::reply}, &block);
  EXPECT_FALSE(o.accepted->parameters.peer_to_peer);
  EXPECT_EQ(o.accepted->parameters.rtr, Rtr::none);
}

TEST(Initiator, AResponderMayDeclinePeerToPeer) {
  const MpaEnhanced block{.ird = 1, .ord = 1};
  const auto o = answered({.peer_to_peer = true}, {.kind = MpaStart::Kind::reply}, &block);
  EXPECT_FALSE(o.accepted->parameters.peer_to_peer);
}

// spec/mpa 2.3.4
TEST(Initiator, ARevision1ReplyAsksForAnotherTry) {
  const auto o = answered({}, {.kind = MpaStart::Kind::reply, .revision = 1});
  EXPECT_TRUE(o.retry_revision_1);
  EXPECT_FALSE(o.accepted || o.rejected || o.refused);
  const auto last =
      answered({.revision = 1, .ird = 5, .ord = 6}, {.kind = MpaStart::Kind::reply, .revision = 1});
  ASSERT_TRUE(last.accepted);
  EXPECT_EQ(last.accepted->parameters.revision, 1);
  EXPECT_EQ(last.accepted->parameters.ird, 5);
  EXPECT_EQ(last.accepted->parameters.ord, 6);
}

TEST(Initiator, AReplyGrantsNothingThatARevision1RequestDidNotHave) {
  const MpaEnhanced block{.peer_to_peer = true, .rtr_write = true, .ird = 1, .ord = 200};
  const auto o = answered({.revision = 1, .peer_to_peer = true, .ird = 5, .ord = 6},
                          {.kind = MpaStart::Kind::reply, .extension_accepted = true}, &block);
  ASSERT_TRUE(o.accepted);
  EXPECT_EQ(o.accepted->parameters.revision, 1);
  EXPECT_FALSE(o.accepted->parameters.peer_to_peer || o.accepted->parameters.extension);
  EXPECT_EQ(o.accepted->parameters.ord, 6);
}

TEST(Initiator, ARejectionIsTheApplicationsAnswer) {
  const MpaEnhanced block{};
  const auto o = answered(
      {}, frame({.kind = MpaStart::Kind::reply, .rejected = true}, &block, pattern(33, 1)));
  ASSERT_TRUE(o.rejected && !o.accepted && !o.refused && !o.retry_revision_1);
  EXPECT_EQ(o.rejected->private_data, pattern(33, 1));
  // siw refuses markers so.
  EXPECT_TRUE(answered({}, test::example("E2 marker refusal")).rejected);
  // Also in an older revision: a retry would show the listener a second request (spec/mpa 2.3.4).
  EXPECT_TRUE(
      answered({}, {.kind = MpaStart::Kind::reply, .rejected = true, .revision = 1}).rejected);
}

TEST(Initiator, AFrameThatIsNoneIsRefused) {
  Buffer reply = test::example("E2 Reply");
  reply[0] = std::byte{'X'};
  const Buffer garbage = pattern(20, 1);
  for (const Buffer& bytes : {reply, garbage}) {
    Initiator i({});
    Bytes b{bytes};
    const auto o = i.received(b);
    ASSERT_TRUE(o && o->refused);
    EXPECT_EQ(o->refused->error, term::kMpaBadFrame);
  }
}

}  // namespace
}  // namespace weft::mpa
