#include "mpa/startup.h"

#include <gtest/gtest.h>

#include <functional>

#include "tests/support/hex.h"
#include "tests/support/wire_examples.h"

namespace weft::mpa {
namespace {

using test::Buffer;
using test::from_hex;
using test::from_text;
using test::pattern;
using test::to_hex;
using wire::MpaEnhanced;
using wire::MpaStart;
namespace term = wire::term;

Buffer frame(const MpaStart& start, const MpaEnhanced* block, Bytes private_data = {}) {
  MpaStart s = start;
  s.enhanced = block != nullptr;
  s.private_data_length = static_cast<uint16_t>(private_data.size() + (block != nullptr ? 4 : 0));
  Buffer b(MpaStart::kSize + (block != nullptr ? 4 : 0));
  s.encode(b.data());
  if (block != nullptr) block->encode(b.data() + MpaStart::kSize);
  b.insert(b.end(), private_data.begin(), private_data.end());
  return b;
}

struct Parsed {
  MpaStart start;
  std::optional<MpaEnhanced> block;
  Buffer private_data;
};
Parsed parsed(MpaStart::Kind kind, Bytes bytes) {
  FrameReader reader(kind);
  auto f = reader.received(bytes);
  EXPECT_TRUE(f.ok() && f->has_value() && bytes.empty());
  if (!f.ok() || !f->has_value()) return {};
  return {(*f)->start, (*f)->enhanced, (*f)->private_data};
}

Initiator::Outcome answered(const Offer& offer, Bytes reply) {
  Initiator initiator(offer);
  auto o = initiator.received(reply);
  EXPECT_TRUE(o.has_value());
  EXPECT_TRUE(reply.empty());
  return o ? std::move(*o) : Initiator::Outcome{};
}
Initiator::Outcome answered(const Offer& offer, const MpaStart& start,
                            const MpaEnhanced* block = nullptr) {
  return answered(offer, frame(start, block));
}

struct Accepting {
  Responder::Request request;
  Responder::Reply reply;
  Parsed sent;
};
Accepting accepting(Bytes request, const Offer& limits, Bytes private_data = {}) {
  Responder responder;
  auto r = responder.received(request);
  EXPECT_TRUE(r.ok() && r->has_value());
  if (!r.ok() || !r->has_value()) return {};
  Accepting a{.request = **r, .reply = responder.accept(limits, private_data)};
  a.sent = parsed(MpaStart::Kind::reply, a.reply.bytes);
  return a;
}

// --- FrameReader

TEST(FrameReader, AnySplitAndNothingBeyondTheFrame) {
  const Buffer request =
      frame({.kind = MpaStart::Kind::request, .crc = true}, nullptr, pattern(30, 1));
  const Buffer bytes = test::join({request, pattern(9, 2)});
  for (size_t first = 0; first <= request.size(); ++first) {
    for (size_t second = first; second <= request.size(); ++second) {
      FrameReader reader(MpaStart::Kind::request);
      Bytes one = Bytes{bytes}.first(first);
      Bytes two = Bytes{bytes}.subspan(first, second - first);
      Bytes three = Bytes{bytes}.subspan(second);
      size_t frames = 0;
      for (Bytes* piece : {&one, &two, &three}) {
        if (frames > 0) break;
        auto f = reader.received(*piece);
        ASSERT_TRUE(f.ok());
        if (f->has_value()) {
          ++frames;
          EXPECT_EQ((*f)->private_data, pattern(30, 1));
        }
      }
      ASSERT_EQ(frames, 1U) << first << ' ' << second;
      const size_t left = one.size() + two.size() + (second < request.size() ? three.size() : 9);
      EXPECT_EQ(left, 9U) << "what follows is the stream's";
    }
  }
}

TEST(FrameReader, Errors) {
  const auto error = [](MpaStart::Kind kind, Buffer bytes,
                        const std::function<void(Buffer&)>& damage) {
    damage(bytes);
    Bytes b{bytes};
    auto f = FrameReader(kind).received(b);
    EXPECT_FALSE(f.ok());
    return f.ok() ? std::string{} : std::string{to_string(f.error())};
  };
  const Buffer request = from_hex(test::kE2Request);
  const auto kind = MpaStart::Kind::request;
  EXPECT_EQ(error(kind, request, [](Buffer& b) { b[3] ^= std::byte{1}; }),
            "the peer does not speak MPA");
  EXPECT_EQ(error(MpaStart::Kind::reply, request, [](Buffer&) {}), "the peer does not speak MPA");
  for (const int revision : {0, 3, 255}) {
    EXPECT_EQ(error(kind, request, [&](Buffer& b) { b[17] = static_cast<std::byte>(revision); }),
              "the peer's MPA revision is neither 1 nor 2");
  }
  EXPECT_EQ(error(kind, request, [](Buffer& b) { store_be<uint16_t>(&b[18], 513); }),
            "the peer announces more than 512 bytes of private data");
  for (uint16_t n = 0; n < 4; ++n) {
    EXPECT_EQ(error(kind, request, [&](Buffer& b) { store_be<uint16_t>(&b[18], n); }),
              "the peer announces an enhanced block and leaves it out");
  }
}

TEST(FrameReader, PrivateDataUpTo512Bytes) {
  const MpaEnhanced block{.ird = 1, .ord = 1};
  for (const size_t n : {size_t{0}, size_t{1}, size_t{507}, size_t{508}}) {
    const Parsed p = parsed(MpaStart::Kind::request,
                            frame({.kind = MpaStart::Kind::request}, &block, pattern(n, 3)));
    EXPECT_EQ(p.private_data, pattern(n, 3));
    EXPECT_TRUE(p.block);
  }
  const Parsed p =
      parsed(MpaStart::Kind::request,
             frame({.kind = MpaStart::Kind::request, .revision = 1}, nullptr, pattern(512, 4)));
  EXPECT_EQ(p.private_data, pattern(512, 4));
}

// --- Initiator

TEST(Initiator, TheRequestSaysWhatIsOffered) {
  const Initiator plain({.crc = true, .extension = false, .ird = 1, .ord = 1});
  EXPECT_EQ(to_hex(plain.request({})), to_hex(from_hex(test::kE2Request)));

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
    // wire.md 2.4: with A every RTR kind that it can send.
    EXPECT_EQ(p.block->peer_to_peer, offer.peer_to_peer);
    EXPECT_EQ(p.block->rtr_fpdu, offer.peer_to_peer);
    EXPECT_EQ(p.block->rtr_write, offer.peer_to_peer);
    EXPECT_EQ(p.block->rtr_read, offer.peer_to_peer);
    EXPECT_EQ(p.private_data, pattern(40, 1));
  }
}

TEST(Initiator, ARevision1RequestHasNoBlockAndNoExtension) {
  const Initiator i({.revision = 1, .extension = true, .peer_to_peer = true});
  EXPECT_EQ(to_hex(i.request(from_text("hello weft"))), to_hex(from_hex(test::kE2Rev1Request)));
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

// wire.md 2.3: CRC is on in both directions when one of the two asks for it.
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

// wire.md 2.7: siw echoes XR=1, XA=0, and so echoes of any kind prove nothing.
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

// RFC 6581 section 9.1, wire.md 2.3: final ORD = min(own, Reply's IRD); the IRD must hold the
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

// wire.md 2.4: every combination of the Reply's B, C and D.
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

// wire.md 2.3
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
  EXPECT_TRUE(answered({}, from_hex(test::kE2MarkerRefused)).rejected);
  // Also in an older revision: a retry would show the listener a second request (wire.md 2.3).
  EXPECT_TRUE(
      answered({}, {.kind = MpaStart::Kind::reply, .rejected = true, .revision = 1}).rejected);
}

TEST(Initiator, AFrameThatIsNoneIsRefused) {
  Buffer reply = from_hex(test::kE2Reply);
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

// --- Responder

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
  // wire.md E2
  const auto a = accepting(from_hex(test::kE2Request), {.extension = false, .ird = 16, .ord = 16});
  EXPECT_EQ(to_hex(a.reply.bytes), to_hex(from_hex(test::kE2Reply)));
  const auto rev1 = accepting(from_hex(test::kE2Rev1Request), {.ird = 5, .ord = 6});
  EXPECT_EQ(to_hex(rev1.reply.bytes), to_hex(from_hex(test::kE2Rev1Reply)));
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
    EXPECT_FALSE(a.sent.start.extension_requested) << "XR=0 tells weft from an echo (wire.md 2.7)";
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

// wire.md 2.3: ird = min(o, Li), ord = min(i, Lo), and never an ORD above the Request's IRD.
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
  EXPECT_EQ(a.sent.block->ird, 3);
  EXPECT_EQ(a.sent.block->ord, 4);
}

// wire.md 2.4: C, D, B, and C for one that names none.
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
  // siw echoes 0x08 and 0x04 (wire.md 2.6).
  Buffer request = from_hex(test::kE2Request);
  request[16] |= std::byte{0x0c};
  const auto a = accepting(request, {.extension = false, .ird = 1, .ord = 1});
  EXPECT_EQ(to_hex(a.reply.bytes), to_hex(from_hex(test::kE2Reply)));
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

// Both sides of every offer come to the same conclusion.
TEST(Startup, BothSidesAgree) {
  for (int bits = 0; bits < 64; ++bits) {
    const Offer active{.revision = static_cast<uint8_t>((bits & 1) != 0 ? 1 : 2),
                       .crc = (bits & 2) != 0,
                       .extension = (bits & 4) != 0,
                       .peer_to_peer = (bits & 8) != 0,
                       .ird = 9,
                       .ord = 5};
    const Offer passive{
        .crc = (bits & 16) != 0, .extension = (bits & 32) != 0, .ird = 4, .ord = 16};
    Initiator initiator(active);
    const auto a = accepting(initiator.request({}), passive);
    const Parameters& there = a.reply.parameters;
    Bytes reply{a.reply.bytes};
    const auto o = initiator.received(reply);
    ASSERT_TRUE(o && o->accepted) << bits;
    const Parameters& here = o->accepted->parameters;
    EXPECT_EQ(here.revision, there.revision);
    EXPECT_EQ(here.crc, there.crc);
    EXPECT_EQ(here.extension, there.extension);
    EXPECT_EQ(here.peer_to_peer, there.peer_to_peer);
    EXPECT_EQ(here.rtr, there.rtr);
    if (active.revision == 2) {
      EXPECT_LE(here.ord, there.ird);
      EXPECT_LE(there.ord, here.ird);
    }
  }
}

}  // namespace
}  // namespace weft::mpa
