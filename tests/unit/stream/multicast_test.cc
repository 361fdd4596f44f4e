#include "stream/multicast.h"

#include <gtest/gtest.h>

#include "kit/failure.h"

namespace weft::stream {
namespace {

TEST(Groups, OneOrSomeInARow) {
  EXPECT_EQ(groups_of("239.2.1.150"), (std::vector<Group>{{"239.2.1.150", ""}}));
  EXPECT_EQ(groups_of("239.2.1.254+2"),
            (std::vector<Group>{{"239.2.1.254", ""}, {"239.2.1.255", ""}, {"239.2.2.0", ""}}));
  EXPECT_EQ(groups_of("232.1.1.1+1@192.0.2.7"),
            (std::vector<Group>{{"232.1.1.1", "192.0.2.7"}, {"232.1.1.2", "192.0.2.7"}}));
}

TEST(Groups, OfOtherAddressesAreNone) {
  for (const char* const text :
       {"", "192.0.2.1", "223.255.255.255", "240.0.0.0", "239.255.255.255+1", "239.1.1.1+",
        "239.1.1.1+x", "239.1.1.1+4096", "239.1.1.1@", "232.1.1.1@192.0.2.256", "239.1.1", "sky"}) {
    EXPECT_THROW(groups_of(text), kit::Failure) << text;
  }
}

TEST(Groups, AreToldFromOtherAddresses) {
  EXPECT_TRUE(is_multicast("224.0.0.1"));
  EXPECT_TRUE(is_multicast("239.255.255.255"));
  EXPECT_FALSE(is_multicast("223.255.255.255"));
  EXPECT_FALSE(is_multicast("192.0.2.1"));
  EXPECT_FALSE(is_multicast("localhost"));
}

}  // namespace
}  // namespace weft::stream
