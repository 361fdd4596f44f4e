#include "measure/ipmi.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weft::measure {
namespace {

using ::testing::HasSubstr;

constexpr const char* kAnswer = R"(
    Instantaneous power reading:                   236 Watts
    Minimum during sampling period:                 18 Watts
    Maximum during sampling period:                467 Watts
    Average power reading over sample period:      233 Watts
    IPMI timestamp:                           Sun Nov 22 11:00:00 2026
    Sampling period:                          00000001 Seconds.
    Power reading state is:                   activated
)";

TEST(DcmiWatts, AreThoseOfNow) {
  EXPECT_DOUBLE_EQ(*dcmi_watts(kAnswer), 236);
}

TEST(DcmiWatts, ACompleteAnswerWithoutPowerIsNone) {
  const auto watts = dcmi_watts("    Instantaneous power reading:                     0 Watts\n");
  ASSERT_FALSE(watts);
  EXPECT_THAT(watts.error().reason, HasSubstr("measures no power"));
}

TEST(DcmiWatts, AnythingElseIsQuoted) {
  const auto watts = dcmi_watts(
      "\nCould not open device at /dev/ipmi0 or /dev/ipmi/0: No such file or directory\nmore\n");
  ASSERT_FALSE(watts);
  EXPECT_THAT(watts.error().reason, HasSubstr("says: Could not open device at /dev/ipmi0"));
  EXPECT_THAT(watts.error().reason, Not(HasSubstr("more")));
  EXPECT_THAT(watts.error().remedy, HasSubstr("ipmi_devintf"));
  EXPECT_THAT(dcmi_watts("").error().reason, HasSubstr("says: nothing"));
}

TEST(OutputOf, HasBothStreams) {
  const auto output = output_of({"sh", "-c", "echo one; echo two >&2"}, 60);
  ASSERT_TRUE(output);
  EXPECT_EQ(*output, "one\ntwo\n");
}

TEST(OutputOf, IsNotWaitedForForever) {
  const auto output = output_of({"sh", "-c", "exec sleep 1000"}, 0.05);
  ASSERT_FALSE(output);
  EXPECT_THAT(output.error().reason, HasSubstr("sh gave no answer within 0.05 s"));
}

TEST(OutputOf, SaysThatThereIsNoSuchProgram) {
  const auto output = output_of({"weft-no-such-program"}, 60);
  ASSERT_FALSE(output);
  EXPECT_THAT(output.error().reason, HasSubstr("weft-no-such-program: No such file"));
}

}  // namespace
}  // namespace weft::measure
