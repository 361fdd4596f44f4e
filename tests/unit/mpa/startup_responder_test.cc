// What a Responder reads in a Request, and how it replies.

#include "tests/unit/mpa/startup_fixture.h"

namespace weft::mpa {
namespace {

TEST(Responder, WhatTheRequestSays) {
  const MpaEnhanced block{
      .peer_to_peer = true, .rtr_write = true, .ird = 3, .ord = MpaEnhanced::kNotNegotiated};
  const auto a = accepting(
      frame({.kind = MpaStart::Kind::request, .extension_requested = true}, &block, pattern(7, 1)),
      {});
  EXPECT_EQ(a.request.ird, 3);
  EXPECT_FALSE(a.request.ord);
  EXPECT_TRUE(a.request.peer_to_peer && a.request.extension);
  EXPECT_EQ(a.request.private_data, pattern(7, 1));

  const auto old = accepting(
      frame({.kind = MpaStart::Kind::request, .extension_requested = true, .revision = 1}, nullptr),
      {});
  EXPECT_FALSE(old.request.ird || old.request.ord || old.request.peer_to_peer ||
               old.request.extension);
}

TEST(Responder, TheAnswerToSiwsOwnRequests) {
  // spec/examples 2
  const auto a = accepting(test::example("E2 Request"), {.extension = false, .ird = 16, .ord = 16});
  EXPECT_EQ(to_hex(a.reply.bytes), to_hex(test::example("E2 Reply")));
  const auto rev1 = accepting(test::example("E2 Rev 1 Request"), {.ird = 5, .ord = 6});
  EXPECT_EQ(to_hex(rev1.reply.bytes), to_hex(test::example("E2 Rev 1 Reply")));
  EXPECT_EQ(rev1.reply.parameters.revision, 1);
  EXPECT_EQ(rev1.reply.parameters.ird, 5);
  EXPECT_EQ(rev1.reply.parameters.ord, 6);
}

TEST(Responder, EveryFlagCombination) {
  for (int bits = 0; bits < 32; ++bits) {
    const MpaStart request{.kind = MpaStart::Kind::request,
                           .markers = (bits & 1) != 0,
                           .crc = (bits & 2) != 0,
                           .extension_requested = (bits & 4) != 0};
    const Offer limits{.crc = (bits & 8) != 0, .extension = (bits & 16) != 0, .ird = 2, .ord = 2};
    const MpaEnhanced block{.ird = 1, .ord = 1};
    const auto a = accepting(frame(request, &block), limits, pattern(5, 2));
    const Parameters& p = a.reply.parameters;
    EXPECT_EQ(p.crc, limits.crc || request.crc);
    EXPECT_EQ(a.sent.start.crc, p.crc) << "C in the Reply turns it on on the other side too";
    EXPECT_EQ(p.send_markers, request.markers);
    EXPECT_FALSE(a.sent.start.markers);
    EXPECT_EQ(p.extension, limits.extension && request.extension_requested);
    EXPECT_EQ(a.sent.start.extension_accepted, p.extension);
    EXPECT_FALSE(a.sent.start.extension_requested) << "XR=0 tells weft from an echo (spec/mpa 2.7)";
    EXPECT_FALSE(a.sent.start.rejected);
    EXPECT_EQ(a.sent.start.revision, 2);
    EXPECT_TRUE(a.sent.block) << "the same S as the Request";
    EXPECT_EQ(a.sent.private_data, pattern(5, 2));
  }
}

TEST(Responder, ARevision2RequestWithoutBlockGetsNone) {
  const auto a = accepting(frame({.kind = MpaStart::Kind::request}, nullptr), {.ird = 3, .ord = 4});
  EXPECT_FALSE(a.sent.block);
  EXPECT_EQ(a.reply.parameters.ird, 3);
  EXPECT_EQ(a.reply.parameters.ord, 4);
}

// spec/mpa 2.3.3: ird = min(o, Li), ord = min(i, Lo), and never an ORD above the Request's IRD.
TEST(Responder, IrdAndOrd) {
  for (const uint16_t i : {0, 1, 7, 16, 200}) {
    for (const uint16_t o : {0, 1, 7, 16, 200}) {
      const MpaEnhanced block{.ird = i, .ord = o};
      const auto a =
          accepting(frame({.kind = MpaStart::Kind::request}, &block), {.ird = 16, .ord = 5});
      EXPECT_EQ(a.reply.parameters.ird, std::min<uint16_t>(o, 16));
      EXPECT_EQ(a.reply.parameters.ord, std::min<uint16_t>(i, 5));
      EXPECT_EQ(a.sent.block->ird, a.reply.parameters.ird);
      EXPECT_EQ(a.sent.block->ord, a.reply.parameters.ord);
    }
  }
  const MpaEnhanced left{.ird = MpaEnhanced::kNotNegotiated, .ord = MpaEnhanced::kNotNegotiated};
  const auto a = accepting(frame({.kind = MpaStart::Kind::request}, &left), {.ird = 3, .ord = 4});
  // RFC 6581 section 9.1: the own numbers stand, and the Reply says that nothing was negotiated.
  EXPECT_EQ(a.reply.parameters.ird, 3);
  EXPECT_EQ(a.reply.parameters.ord, 4);
  EXPECT_EQ(a.sent.block->ird, MpaEnhanced::kNotNegotiated);
  EXPECT_EQ(a.sent.block->ord, MpaEnhanced::kNotNegotiated);
}

// spec/mpa 2.4: C, D, B, and C for one that names none.
TEST(Responder, PicksOneRtrKind) {
  for (int bits = 0; bits < 8; ++bits) {
    const MpaEnhanced block{.peer_to_peer = true,
                            .rtr_fpdu = (bits & 1) != 0,
                            .rtr_write = (bits & 2) != 0,
                            .rtr_read = (bits & 4) != 0,
                            .ird = 1,
                            .ord = 1};
    const auto a = accepting(frame({.kind = MpaStart::Kind::request}, &block), {});
    const Rtr expected = block.rtr_write || bits == 0 ? Rtr::write
                         : block.rtr_read             ? Rtr::read
                                                      : Rtr::fpdu;
    EXPECT_EQ(a.reply.parameters.rtr, expected) << bits;
    EXPECT_TRUE(a.sent.block->peer_to_peer);
    EXPECT_EQ(a.sent.block->rtr_write, expected == Rtr::write);
    EXPECT_EQ(a.sent.block->rtr_read, expected == Rtr::read);
    EXPECT_EQ(a.sent.block->rtr_fpdu, expected == Rtr::fpdu);
  }
  const MpaEnhanced classic{.rtr_write = true, .ird = 1, .ord = 1};
  const auto a = accepting(frame({.kind = MpaStart::Kind::request}, &classic), {});
  EXPECT_EQ(a.reply.parameters.rtr, Rtr::none);
  EXPECT_FALSE(a.sent.block->peer_to_peer || a.sent.block->rtr_write);
}

TEST(Responder, ReservedBitsAreNotEchoed) {
  // siw echoes 0x08 and 0x04 (spec/siw 2.8). 0x04 asks for memory of this host, and gets none
  // without the extension.
  Buffer request = test::example("E2 Request");
  request[16] |= std::byte{0x0c};
  const auto a = accepting(request, {.extension = false, .ird = 1, .ord = 1});
  EXPECT_EQ(to_hex(a.reply.bytes), to_hex(test::example("E2 Reply")));
}

TEST(Responder, ARejectionKeepsRevisionAndBlock) {
  for (const uint8_t revision : {1, 2}) {
    const MpaEnhanced block{.ird = 1, .ord = 1};
    const Buffer request =
        frame({.kind = MpaStart::Kind::request, .crc = true, .revision = revision},
              revision == 2 ? &block : nullptr);
    Responder responder;
    Bytes b{request};
    ASSERT_TRUE(responder.received(b).ok());
    const Parsed p = parsed(MpaStart::Kind::reply, responder.reject(pattern(9, 4)));
    EXPECT_TRUE(p.start.rejected && p.start.crc);
    EXPECT_EQ(p.start.revision, revision);
    EXPECT_EQ(p.block.has_value(), revision == 2);
    EXPECT_EQ(p.private_data, pattern(9, 4));
  }
}

// The fixed part says all that a rejection needs: the revision, C and S.
TEST(Responder, ARequestMayBeRejectedBeforeItIsWhole) {
  const MpaEnhanced block{.ird = 3, .ord = 4};
  for (const uint8_t revision : {1, 2}) {
    const MpaStart start{.kind = MpaStart::Kind::request, .crc = true, .revision = revision};
    const Buffer whole = frame(start, revision == 2 ? &block : nullptr, pattern(7, 1));
    for (size_t n = 0; n <= whole.size(); ++n) {
      SCOPED_TRACE(std::to_string(n) + " bytes");
      Responder responder;
      Bytes bytes = Bytes{whole}.first(n);
      ASSERT_TRUE(responder.received(bytes).ok());
      ASSERT_EQ(responder.asked().has_value(), n >= MpaStart::kSize);
      if (!responder.asked()) continue;
      EXPECT_EQ(responder.asked()->revision, revision);
      const Parsed p = parsed(MpaStart::Kind::reply, responder.reject({}));
      EXPECT_TRUE(p.start.rejected && p.start.crc);
      EXPECT_EQ(p.start.revision, revision);
      EXPECT_EQ(p.block.has_value(), revision == 2) << "the same S as the Request";
    }
  }
  Responder stranger;
  const Buffer rubbish = pattern(MpaStart::kSize, 9);
  Bytes bytes{rubbish};
  EXPECT_FALSE(stranger.received(bytes).ok());
  EXPECT_FALSE(stranger.asked());
}

}  // namespace
}  // namespace weft::mpa
