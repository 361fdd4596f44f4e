// Moments as people write them: UTC, ISO 8601. Nanoseconds since 1970, without leap seconds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weft::stream {

// "2026-11-25", "2026-11-25T09:30", with seconds, with a fraction of up to 9 digits, with a "Z"
// behind it; a space may take the place of the "T". Nothing for anything else, or a day that no
// calendar has.
std::optional<int64_t> parse_utc(std::string_view text);
// "2026-11-25T09:30:00.123": so many digits behind the point, cut off; 0: no point.
std::string utc_text(int64_t ns, unsigned digits);

// A day number and what has passed of that day.
struct DayTime {
  int64_t mjd = 0;     // Modified Julian Day
  int64_t second = 0;  // of the day
  int64_t ns = 0;      // of the second
};
DayTime day_time(int64_t ns);

}  // namespace weft::stream
