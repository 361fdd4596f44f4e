#include "stream/utc.h"

#include <fmt/format.h>

#include <chrono>

namespace weft::stream {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kDay = 86'400;
constexpr int64_t kMjdOf1970 = 40'587;

// Reads from the front of a text.
class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}
  bool at_end() const { return rest_.empty(); }
  bool skip(char c) {
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  // Exactly so many digits.
  std::optional<int64_t> number(size_t digits) {
    if (rest_.size() < digits) return std::nullopt;
    int64_t value = 0;
    for (size_t i = 0; i < digits; ++i) {
      if (rest_[i] < '0' || rest_[i] > '9') return std::nullopt;
      value = value * 10 + (rest_[i] - '0');
    }
    rest_.remove_prefix(digits);
    return value;
  }
  // One to nine digits behind a point, as nanoseconds.
  std::optional<int64_t> fraction() {
    int64_t value = 0;
    int64_t unit = kSecond;
    while (unit > 1) {
      const auto digit = number(1);
      if (!digit) break;
      unit /= 10;
      value += *digit * unit;
    }
    return unit == kSecond ? std::nullopt : std::optional{value};
  }

 private:
  std::string_view rest_;
};

std::optional<int64_t> parse_day(Reader& r) {
  const auto year = r.number(4);
  if (!year || !r.skip('-')) return std::nullopt;
  const auto month = r.number(2);
  if (!month || !r.skip('-')) return std::nullopt;
  const auto day = r.number(2);
  if (!day) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year{static_cast<int>(*year)},
                                         std::chrono::month{static_cast<unsigned>(*month)},
                                         std::chrono::day{static_cast<unsigned>(*day)}};
  if (!date.ok() || *year < 1970) return std::nullopt;
  return std::chrono::sys_days{date}.time_since_epoch().count();
}

// What stands behind the day.
std::optional<int64_t> parse_time(Reader& r) {
  const auto hour = r.number(2);
  if (!hour || *hour > 23 || !r.skip(':')) return std::nullopt;
  const auto minute = r.number(2);
  if (!minute || *minute > 59) return std::nullopt;
  int64_t ns = (*hour * 60 + *minute) * 60 * kSecond;
  if (!r.skip(':')) return ns;
  const auto second = r.number(2);
  if (!second || *second > 59) return std::nullopt;
  ns += *second * kSecond;
  if (!r.skip('.')) return ns;
  const auto fraction = r.fraction();
  return fraction ? std::optional{ns + *fraction} : std::nullopt;
}

}  // namespace

std::optional<int64_t> parse_utc(std::string_view text) {
  Reader r{text};
  const auto day = parse_day(r);
  // Later ones are more nanoseconds than the type holds.
  constexpr int64_t kYear2262 = 106'000;
  if (!day || *day > kYear2262) return std::nullopt;
  int64_t ns = *day * kDay * kSecond;
  if (r.at_end()) return ns;
  if (!r.skip('T') && !r.skip(' ')) return std::nullopt;
  const auto time = parse_time(r);
  r.skip('Z');
  return time && r.at_end() ? std::optional{ns + *time} : std::nullopt;
}

std::string utc_text(int64_t ns, unsigned digits) {
  const DayTime t = day_time(ns);
  const std::chrono::year_month_day date{
      std::chrono::sys_days{std::chrono::days{t.mjd - kMjdOf1970}}};
  std::string text =
      fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}", static_cast<int>(date.year()),
                  static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                  t.second / 3600, t.second / 60 % 60, t.second % 60);
  if (digits > 0) text += "." + fmt::format("{:09}", t.ns).substr(0, digits);
  return text;
}

DayTime day_time(int64_t ns) {
  const auto floor_div = [](int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); };
  const int64_t seconds = floor_div(ns, kSecond);
  const int64_t days = floor_div(seconds, kDay);
  return {.mjd = days + kMjdOf1970, .second = seconds - days * kDay, .ns = ns - seconds * kSecond};
}

}  // namespace weft::stream
