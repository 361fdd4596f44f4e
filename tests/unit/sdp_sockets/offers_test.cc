#include "sdp/sockets/offers.h"

#include <gtest/gtest.h>

namespace weft::sdp {
namespace {

TEST(SdpOffers, TheVariableIsANumberOfBytesOr0) {
  for (const auto& [text, bytes] : {std::pair{"0", 0U}, {"32768", 32768U}, {"1000000", 1000000U}}) {
    const auto threshold = OfferThreshold::parse(text);
    ASSERT_TRUE(threshold) << text;
    EXPECT_EQ(threshold->bytes, bytes);
  }
  for (const char* text : {"", "32767", "-1", "auto", "64k", "4294967296"}) {
    EXPECT_FALSE(OfferThreshold::parse(text)) << text;
  }
}

TEST(SdpOffers, ByDefaultNothingIsOffered) {
  const Offers offers{OfferThreshold{}};
  EXPECT_FALSE(offers.worth(SIZE_MAX));
}

TEST(SdpOffers, OfferOfTheThresholdAndMore) {
  const Offers offers{OfferThreshold{40'000}};
  EXPECT_FALSE(offers.worth(39'999));
  EXPECT_TRUE(offers.worth(40'000));
}

TEST(SdpOffers, OffersInVainBecomeRareAndOneThatPaysBringsThemBack) {
  Offers offers{OfferThreshold{40'000}};
  const auto skipped = [&offers] {
    int n = 0;
    while (!offers.now()) ++n;
    return n;
  };
  EXPECT_EQ(skipped(), 0);
  for (const int expected : {1, 3, 7, 15, 31, 63, 63}) {
    offers.result(false);
    EXPECT_EQ(skipped(), expected);
  }
  offers.result(true);
  EXPECT_EQ(skipped(), 0);
  offers.result(false);
  EXPECT_EQ(skipped(), 1);
}

}  // namespace
}  // namespace weft::sdp
