#include "mpa/startup.h"

#include <gtest/gtest.h>

#include <functional>

#include "tests/unit/mpa/startup_fixture.h"

namespace weft::mpa {
namespace {

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
  const Buffer request = test::example("E2 Request");
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

// spec/mpa 2.9.
TEST(Startup, AnInitiatorThatIsEstablishedLaterSaysSo) {
  constexpr Offer kLater{.established_later = true};
  EXPECT_TRUE(start_of(kLater, {}).established_later);
  EXPECT_FALSE(start_of({}, {}).established_later);
  EXPECT_FALSE(start_of({.extension = false, .established_later = true}, {}).established_later);
  EXPECT_FALSE(start_of({.revision = 1, .established_later = true}, {}).established_later);

  for (const bool weft : {true, false}) {
    const Offer limits{.extension = weft};
    const auto reply = asked(kLater, {}).accept(limits, {});
    EXPECT_EQ(reply.parameters.established_later, weft);
    const auto outcome = answered(kLater, reply.bytes);
    ASSERT_TRUE(outcome.accepted);
    EXPECT_EQ(outcome.accepted->parameters.established_later, weft) << "both know the same";
  }
  EXPECT_FALSE(asked({}, {}).accept({}, {}).parameters.established_later);
}

}  // namespace
}  // namespace weft::mpa
