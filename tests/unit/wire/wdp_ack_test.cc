#include "wire/wdp_ack.h"

#include <gtest/gtest.h>

#include <optional>

#include "base/random.h"
#include "tests/support/hex.h"
#include "wire/wdp_crc.h"

namespace weft::wire {
namespace {

using test::Buffer;
using test::from_hex;
using test::to_hex;
using Why = std::optional<WdpDrop>;

// spec/wdp-rd 4, every field with bytes of its own.
Buffer ack_bytes() {
  Buffer b = from_hex(
      "d1 48 00 00 | 01 02 03 04 | 11 12 13 14 | 00 00 00 00 | 21 22 23 24 | 31 32 33 34 |"
      "41 42 00 02 | 51 52 53 54 | 61 62 63 64 | 71 72 73 74 | 81 82 83 84");
  seal_wdp(b);
  return b;
}
Why dropped(Buffer b, bool seal = true) {
  if (seal) seal_wdp(b);
  const auto a = WdpAck::parse(b);
  return a.ok() ? Why{} : Why{a.error()};
}
Buffer encoded(const WdpAck& a) {
  Buffer b(a.size() + 1, std::byte{0xee});
  EXPECT_EQ(a.encode(b.data()), a.size());
  EXPECT_EQ(b.back(), std::byte{0xee}) << "wrote beyond size()";
  b.pop_back();
  return b;
}

TEST(WdpAck, LayoutOfTheSpecification) {
  const Buffer b = ack_bytes();
  const auto a = WdpAck::parse(b);
  ASSERT_TRUE(a.ok()) << to_string(a.error());
  EXPECT_EQ(a->token, SessionToken{0x01020304});
  EXPECT_EQ(a->cum, Csn{0x11121314});
  EXPECT_EQ(a->timestamp, 0x21222324U);
  EXPECT_EQ(a->trigger, Csn{0x31323334});
  EXPECT_EQ(a->delay, 0x4142);
  EXPECT_EQ(a->delay_us(), 0x4142U * 8) << "units of 8 us";
  EXPECT_EQ(a->words, 2);
  EXPECT_EQ(a->window, 0x51525354U);
  EXPECT_EQ(a->ce, 0x61626364U);
  EXPECT_EQ(a->sack[0], 0x71727374U);
  EXPECT_EQ(a->sack[1], 0x81828384U);
  EXPECT_EQ(to_hex(encoded(*a)), to_hex(b));
}

TEST(WdpAck, RoundTripsWithEveryNumberOfWords) {
  SeededRandom random(5);
  for (uint16_t words = 0; words <= WdpAck::kMaxWords; ++words) {
    WdpAck a;
    a.token = SessionToken{static_cast<uint32_t>(random.next())};
    a.cum = Csn{static_cast<uint32_t>(random.next())};
    a.timestamp = static_cast<uint32_t>(random.next());
    a.trigger = Csn{static_cast<uint32_t>(random.next())};
    a.delay = static_cast<uint16_t>(random.next());
    a.words = words;
    a.window = static_cast<uint32_t>(random.next());
    a.ce = static_cast<uint32_t>(random.next());
    for (size_t i = 0; i < words; ++i) a.sack[i] = static_cast<uint32_t>(random.next());
    const Buffer b = encoded(a);
    EXPECT_EQ(b.size(), 36U + 4U * words);
    const auto again = WdpAck::parse(b);
    ASSERT_TRUE(again.ok()) << words;
    EXPECT_EQ(*again, a) << words;
    // Nothing behind the words is taken.
    Buffer longer = b;
    longer.insert(longer.end(), 4, std::byte{1});
    EXPECT_EQ(dropped(longer), WdpDrop::length_mismatch) << words;
  }
}

TEST(WdpAck, EveryCutIsDropped) {
  const Buffer b = ack_bytes();
  for (size_t n = 0; n < b.size(); ++n) {
    Buffer cut(b.begin(), b.begin() + static_cast<ptrdiff_t>(n));
    if (n >= 36) {
      EXPECT_EQ(dropped(cut, false), WdpDrop::bad_crc) << n;
      EXPECT_EQ(dropped(cut), WdpDrop::length_mismatch) << n;
    } else {
      EXPECT_EQ(dropped(cut, false), WdpDrop::too_short) << n;
    }
  }
}

TEST(WdpAck, MoreThan32WordsAreDropped) {
  // "NW: SACK words, 0..32"
  Buffer b = ack_bytes();
  b.resize(WdpAck::kMaxSize + 4);
  for (const uint16_t words : {33, 34, 0x7fff, 0xffff}) {
    store_be(b.data() + 26, words);
    EXPECT_EQ(dropped(b), WdpDrop::too_many_sack_words) << words;
  }
  b.resize(WdpAck::kMaxSize);
  store_be<uint16_t>(b.data() + 26, 32);
  EXPECT_EQ(dropped(b), Why{});
}

TEST(WdpAck, CrcIsMandatory) {
  // spec/wdp 2.3: Class CTL and RDACK: mandatory.
  Buffer b = ack_bytes();
  b[1] = std::byte{0x40};
  EXPECT_EQ(dropped(b), WdpDrop::crc_missing);
  b = ack_bytes();
  for (size_t bit = 16; bit < b.size() * 8; ++bit) {
    b[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
    EXPECT_EQ(dropped(b, false), WdpDrop::bad_crc) << bit;
    b[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
  }
}

TEST(WdpAck, BelongsToTheChannel) {
  // "didx=sidx=0"
  for (const size_t i : {2, 3}) {
    Buffer b = ack_bytes();
    b[i] = std::byte{1};
    EXPECT_EQ(dropped(b), WdpDrop::index_mismatch) << i;
  }
}

TEST(WdpAck, OnlyItsClass) {
  Buffer b = ack_bytes();
  for (unsigned c = 0; c < 16; ++c) {
    b[1] = static_cast<std::byte>(c << 4 | 8);
    const Why why = c == 4  ? Why{}
                    : c < 6 ? Why{WdpDrop::wrong_class}
                            : Why{WdpDrop::unknown_class};
    EXPECT_EQ(dropped(b), why) << c;
  }
}

TEST(WdpAck, OtherFlagsAreIgnored) {
  Buffer b = ack_bytes();
  b[1] = std::byte{0x4f};
  seal_wdp(b);
  const auto a = WdpAck::parse(b);
  ASSERT_TRUE(a.ok());
  EXPECT_EQ(to_hex(encoded(*a)), to_hex(ack_bytes()));
}

TEST(WdpAck, BitIIsCumPlus1PlusI) {
  // "bitmap, MSB first: bit i = CSN CUM+1+i is held". CUM is near the wrap.
  for (uint32_t i = 0; i < 1024; ++i) {
    WdpAck a;
    a.cum = Csn{0xffffff80};
    const Csn csn = a.cum + (1 + i);
    EXPECT_FALSE(a.holds(csn)) << i;
    ASSERT_TRUE(a.hold(csn)) << i;
    EXPECT_EQ(a.words, i / 32 + 1) << i;
    EXPECT_EQ(a.sack[i / 32], uint32_t{0x80000000} >> i % 32) << i;
    EXPECT_TRUE(a.holds(csn)) << i;
    EXPECT_FALSE(a.holds(csn + 1)) << i;
    EXPECT_FALSE(a.holds(Csn{csn.value() - 1})) << i;
  }
}

TEST(WdpAck, HoldsNothingOutsideItsWords) {
  WdpAck a;
  a.cum = Csn{1000};
  EXPECT_FALSE(a.hold(a.cum));
  EXPECT_FALSE(a.hold(Csn{999}));
  EXPECT_FALSE(a.hold(a.cum + 1025));
  EXPECT_EQ(a.words, 0);
  ASSERT_TRUE(a.hold(a.cum + 1024));
  ASSERT_TRUE(a.hold(a.cum + 1));
  EXPECT_EQ(a.words, 32) << "an earlier one takes none back";
  EXPECT_FALSE(a.holds(a.cum) || a.holds(Csn{999}) || a.holds(a.cum + 1025));
  a.words = 31;
  EXPECT_FALSE(a.holds(a.cum + 1024)) << "beyond NW nothing is said";
}

TEST(WdpAck, ToString) {
  EXPECT_EQ(WdpAck::parse(ack_bytes())->to_string(),
            "RDACK token 0x01020304 CUM 286397204 TRIG 825373492 TS 555885348 delay 133648 us RWND "
            "1364349780 KiB CE 1633837924 SACK 71727374 81828384");
  EXPECT_EQ(WdpAck{}.to_string(),
            "RDACK token 0x00000000 CUM 0 TRIG 0 TS 0 delay 0 us RWND 0 KiB CE 0");
}

}  // namespace
}  // namespace weft::wire
