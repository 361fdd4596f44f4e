#include "stream/utc.h"

#include <gtest/gtest.h>

namespace weft::stream {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

TEST(Utc, ReadsWhatPeopleWrite) {
  const int64_t moment = 1'795'599'000 * kSecond;  // date -u -d 2026-11-25T09:30 +%s
  EXPECT_EQ(parse_utc("2026-11-25T09:30"), moment);
  EXPECT_EQ(parse_utc("2026-11-25 09:30:00"), moment);
  EXPECT_EQ(parse_utc("2026-11-25T09:30:07Z"), moment + 7 * kSecond);
  EXPECT_EQ(parse_utc("2026-11-25T09:30:00.5"), moment + kSecond / 2);
  EXPECT_EQ(parse_utc("2026-11-25T09:30:00.000000007Z"), moment + 7);
  EXPECT_EQ(parse_utc("2026-11-25"), moment - (9 * 60 + 30) * 60 * kSecond);
  EXPECT_EQ(parse_utc("1970-01-01T00:00:00"), 0);
  EXPECT_EQ(parse_utc("2024-02-29T23:59:59"), 1'709'251'199 * kSecond);
}

TEST(Utc, RefusesEverythingElse) {
  for (const char* text : {"",
                           "now",
                           "2026",
                           "2026-11",
                           "26-11-25",
                           "2026-13-01",
                           "2026-02-29",
                           "2026-11-25T",
                           "2026-11-25T9:30",
                           "2026-11-25T24:00",
                           "2026-11-25T09:60",
                           "2026-11-25T09:30:60",
                           "2026-11-25T09:30:00.",
                           "2026-11-25T09:30:00.1234567890",
                           "2026-11-25T09:30:00+02:00",
                           "2026-11-25T09:30:00ZZ",
                           "2026-11-25T09:30:00 ",
                           "1969-12-31",
                           "9999-01-01",
                           "-026-11-25"}) {
    EXPECT_EQ(parse_utc(text), std::nullopt) << text;
  }
}

TEST(Utc, WritesWhatItReads) {
  const int64_t moment = *parse_utc("2026-11-25T09:30:07.123456789");
  EXPECT_EQ(utc_text(moment, 0), "2026-11-25T09:30:07");
  EXPECT_EQ(utc_text(moment, 3), "2026-11-25T09:30:07.123");
  EXPECT_EQ(utc_text(moment, 9), "2026-11-25T09:30:07.123456789");
  EXPECT_EQ(utc_text(-1, 9), "1969-12-31T23:59:59.999999999");
}

TEST(Utc, DaysAndWhatHasPassedOfThem) {
  const DayTime t = day_time(*parse_utc("2000-01-01T12:00:01.25"));
  EXPECT_EQ(t.mjd, 51'544);
  EXPECT_EQ(t.second, 43'201);
  EXPECT_EQ(t.ns, kSecond / 4);
}

}  // namespace
}  // namespace weft::stream
