#include "wire/wdp_messages.h"

#include <gtest/gtest.h>

#include <set>

#include "base/random.h"
#include "tests/support/hex.h"

namespace weft::wire {
namespace {

using test::Buffer;
using test::from_hex;
using test::to_hex;

template <class Message>
Buffer encoded(const Message& m) {
  Buffer b(Message::kSize + 1, std::byte{0xee});
  m.encode(b.data());
  EXPECT_EQ(b.back(), std::byte{0xee}) << "wrote beyond kSize";
  b.pop_back();
  return b;
}

TEST(WdpReadRange, LayoutOfTheSpecification) {
  const Buffer b = from_hex("01 02 03 04 | 11 12 13 14");
  ASSERT_EQ(b.size(), WdpReadRange::kSize);
  const WdpReadRange r = WdpReadRange::parse(b.data());
  EXPECT_EQ(r.length, 0x01020304U);
  EXPECT_EQ(r.attempt, 0x11121314U);
  EXPECT_EQ(to_hex(encoded(r)), to_hex(b));
  EXPECT_EQ(r.to_string(), "16909060 bytes, attempt 286397204");
  EXPECT_EQ(WdpReadRange::kMaxUcRange, 1024U * 1024U);
}

TEST(WdpResponse, LayoutOfTheSpecification) {
  const Buffer b = from_hex("05 09 01 07 | 11 12 13 14 | 21 22 23 24");
  ASSERT_EQ(b.size(), WdpResponse::kSize);
  const WdpResponse r = WdpResponse::parse(b.data());
  EXPECT_EQ(r.qidx, 5);
  EXPECT_EQ(r.ridx, 9);
  EXPECT_EQ(r.code, WdpResponse::Code::rnr);
  EXPECT_EQ(r.delay, 7);
  EXPECT_EQ(r.delay_us(), 1280U);
  EXPECT_EQ(r.msn, Msn{0x11121314});
  EXPECT_EQ(r.aux, 0x21222324U);
  EXPECT_EQ(to_hex(encoded(r)), to_hex(b));
  EXPECT_EQ(r.to_string(),
            "RESP receiver not ready: from 9 to 5 MSN 286397204 delay 1280 us aux 0x21222324");
}

TEST(WdpMessages, RoundTrip) {
  SeededRandom random(3);
  for (int i = 0; i < 1000; ++i) {
    Buffer b(WdpResponse::kSize);
    for (std::byte& x : b) x = static_cast<std::byte>(random.next());
    const WdpResponse r = WdpResponse::parse(b.data());
    ASSERT_EQ(to_hex(encoded(r)), to_hex(b));
    ASSERT_EQ(WdpResponse::parse(encoded(r).data()), r);
    const WdpReadRange range = WdpReadRange::parse(b.data());
    ASSERT_EQ(to_hex(encoded(range)), to_hex(Bytes{b}.first(WdpReadRange::kSize)));
  }
}

TEST(WdpResponse, DelayDoublesAndEndsAtTheLongestOfInfiniBand) {
  // spec/wdp-rd 6: 2^n * 10 us.
  WdpResponse r;
  uint32_t expected = 10;
  for (unsigned n = 0; n < 256; ++n) {
    r.delay = static_cast<uint8_t>(n);
    EXPECT_EQ(r.delay_us(), expected) << n;
    if (n < 16) expected *= 2;
  }
  EXPECT_EQ(expected, 655'360U);
}

TEST(WdpResponse, CodesHaveNumbersAndNames) {
  using Code = WdpResponse::Code;
  const Code codes[] = {Code::ack,    Code::rnr,       Code::not_ready,    Code::length,
                        Code::access, Code::operation, Code::invalid_flow, Code::flush,
                        Code::key,    Code::ready};
  std::set<std::string> names;
  uint8_t number = 0;
  for (const Code c : codes) {
    EXPECT_EQ(static_cast<uint8_t>(c), number++);
    names.insert(to_string(c));
  }
  names.insert(to_string(Code{10}));
  EXPECT_EQ(names.size(), 11U);
  EXPECT_STREQ(to_string(Code{255}), "unknown code");
}

}  // namespace
}  // namespace weft::wire
