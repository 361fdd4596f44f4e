#include "wire/wdp_ended.h"

#include <gtest/gtest.h>

#include "tests/support/append.h"
#include "tests/support/hex.h"

namespace weft::wire {
namespace {

using test::Buffer;
using test::from_hex;
using test::to_hex;

constexpr WdpEnded kEnded{.token = SessionToken{0x01020304}, .taken = Psn{0xa0b0c0d0}};

TEST(WdpEnded, BytesAreThoseOfTheSpec) {
  EXPECT_EQ(to_hex(kEnded.encode()), "00 01 00 08 01 02 03 04 a0 b0 c0 d0");
}

TEST(WdpEnded, IsFoundBehindOthers) {
  const Buffer tlvs = from_hex("00070001ff0000000001000801020304a0b0c0d0");
  const auto found = WdpEnded::find(tlvs);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->token, kEnded.token);
  EXPECT_EQ(found->taken, kEnded.taken);
}

TEST(WdpEnded, IsNotThere) {
  EXPECT_FALSE(WdpEnded::find({}));
  EXPECT_FALSE(WdpEnded::find(from_hex("0002000801020304a0b0c0d0"))) << "another type";
  EXPECT_FALSE(WdpEnded::find(from_hex("000100040102030400000000"))) << "another size";
  EXPECT_FALSE(WdpEnded::find(from_hex("0001000801020304"))) << "cut";
}

}  // namespace
}  // namespace weft::wire
