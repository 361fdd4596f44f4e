#include "base/fault_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weft {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

TEST(FaultSpec, ReadsEveryWord) {
  const auto spec = FaultSpec::parse(
      "loss:1e-3,burst:2.5,duplicate:2%,reorder:0.01,reorder_delay:150us,delay:3ms,jitter:1s,"
      "corrupt:1,split:0.5,way:in,seed:18446744073709551615");
  ASSERT_TRUE(spec.ok());
  EXPECT_EQ(*spec, (FaultSpec{.loss = 0.001,
                              .burst = 2.5,
                              .duplicate = 0.02,
                              .reorder = 0.01,
                              .reorder_delay = 150us,
                              .delay = 3ms,
                              .jitter = 1s,
                              .corrupt = 1,
                              .split = 0.5,
                              .direction = FaultDirection::in,
                              .seed = UINT64_MAX}));
  EXPECT_FALSE(spec->nothing_for_datagrams() || spec->nothing_for_streams());
}

TEST(FaultSpec, NothingIsNothing) {
  const auto spec = FaultSpec::parse("");
  ASSERT_TRUE(spec.ok());
  EXPECT_EQ(*spec, FaultSpec{});
  EXPECT_EQ(spec->to_string(), "");
  for (const char* text : {"", "seed:3,burst:4,reorder_delay:1ms,way:out"}) {
    const auto given = FaultSpec::parse(text);
    EXPECT_TRUE(given->nothing_for_datagrams() && given->nothing_for_streams()) << text;
  }
}

TEST(FaultSpec, KnowsWhatIsForDatagramsAndWhatForStreams) {
  const auto datagrams = FaultSpec::parse("loss:0.1,duplicate:0.1,reorder:0.1,corrupt:0.1");
  EXPECT_FALSE(datagrams->nothing_for_datagrams());
  EXPECT_TRUE(datagrams->nothing_for_streams());
  const auto streams = FaultSpec::parse("split:0.1");
  EXPECT_TRUE(streams->nothing_for_datagrams());
  EXPECT_FALSE(streams->nothing_for_streams());
  for (const char* both : {"delay:1ms", "jitter:1ms"}) {
    EXPECT_FALSE(FaultSpec::parse(both)->nothing_for_datagrams());
    EXPECT_FALSE(FaultSpec::parse(both)->nothing_for_streams());
  }
}

TEST(FaultSpec, HasAWay) {
  EXPECT_TRUE(FaultSpec{}.applies_to(FaultDirection::in));
  EXPECT_TRUE(FaultSpec{}.applies_to(FaultDirection::out));
  EXPECT_TRUE(FaultSpec::parse("way:out")->applies_to(FaultDirection::out));
  EXPECT_FALSE(FaultSpec::parse("way:out")->applies_to(FaultDirection::in));
  EXPECT_FALSE(FaultSpec::parse("way:in")->applies_to(FaultDirection::out));
}

TEST(FaultSpec, SaysWhatItCannotRead) {
  const auto why = [](std::string_view text) {
    const auto spec = FaultSpec::parse(text);
    return spec.ok() ? std::string("(read)") : spec.error();
  };
  EXPECT_THAT(why("lost:0.1"), HasSubstr("no fault is called 'lost:0.1'; there are loss ("));
  EXPECT_EQ(why("loss"), "the fault 'loss' has no value; write loss:VALUE");
  EXPECT_THAT(why("loss:0.1,,seed:1"), HasSubstr("no fault is called ''"));
  EXPECT_THAT(why("loss:0.1,seed:1,loss:0.2"), HasSubstr("'loss' stands there twice"));
  for (const char* bad : {"loss:", "loss:1.1", "loss:-0.1", "loss:nan", "loss:2x", "loss:150%"}) {
    EXPECT_THAT(why(bad), HasSubstr("is no value for fault 'loss', which takes a share")) << bad;
  }
  EXPECT_THAT(why("burst:0.5"), HasSubstr("takes a number from 1 to 10000"));
  EXPECT_THAT(why("burst:3s"), HasSubstr("'3s' is no value for fault 'burst'"));
  for (const char* bad : {"delay:5", "delay:-1us", "delay:61s", "delay:us", "delay:1m"}) {
    EXPECT_THAT(why(bad), HasSubstr("takes a time up to 60 s")) << bad;
  }
  EXPECT_THAT(why("seed:1.5"), HasSubstr("takes a whole number"));
  EXPECT_THAT(why("way:up"), HasSubstr("takes in, out or both"));
}

TEST(FaultSpec, WritesWhatItReads) {
  for (const char* text : {"loss:0.001", "burst:4", "seed:7", "delay:3ms", "jitter:1500ns",
                           "loss:0.125,burst:2.5,duplicate:0.25,reorder:1,reorder_delay:2s,"
                           "corrupt:0.5,split:0.5,way:out,seed:0",
                           "reorder_delay:0s"}) {
    const auto spec = FaultSpec::parse(text);
    ASSERT_TRUE(spec.ok()) << text;
    EXPECT_EQ(spec->to_string(), text);
    EXPECT_EQ(*FaultSpec::parse(spec->to_string()), *spec);
  }
}

}  // namespace
}  // namespace weft
