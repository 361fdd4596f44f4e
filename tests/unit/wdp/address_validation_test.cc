#include "wdp/address_validation.h"

#include <gtest/gtest.h>

namespace weft::wdp {
namespace {

TEST(AddressValidation, NothingBeforeSomethingCame) {
  const AddressValidation a;
  EXPECT_FALSE(a.is_validated());
  EXPECT_FALSE(a.allows(1));
}

// RFC 9000 8.1: "three times the amount of data received from that address".
TEST(AddressValidation, ThreeTimesWhatCameAndNotAByteMore) {
  AddressValidation a;
  a.came(100, false);
  EXPECT_TRUE(a.allows(300));
  EXPECT_FALSE(a.allows(301));
  a.went(200);
  EXPECT_TRUE(a.allows(100));
  EXPECT_FALSE(a.allows(101));
  a.came(10, false);
  EXPECT_TRUE(a.allows(130));
  EXPECT_FALSE(a.allows(131));
}

TEST(AddressValidation, AnythingOnceItIsKnown) {
  AddressValidation cookie;
  cookie.came(1, true);
  cookie.came(1, false);
  EXPECT_TRUE(cookie.is_validated()) << "it stays so";
  EXPECT_TRUE(cookie.allows(1'000'000));
  AddressValidation answer;
  answer.validate();
  EXPECT_TRUE(answer.is_validated());
  EXPECT_TRUE(answer.allows(1));
}

}  // namespace
}  // namespace weft::wdp
