#include "stream/output/output_options.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <map>

#include "stream/utc.h"

namespace weft::stream {
namespace {

void replace_all(std::string& text, const std::string& word, const std::string& by) {
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + by.size())) {
    text.replace(at, word.size(), by);
  }
}

}  // namespace

bool parse_rotation(const std::string& text, Rotation& rotation) {
  static const std::map<std::string, double> kSeconds{
      {"s", 1}, {"min", 60}, {"h", 3600}, {"d", 86'400}};
  static const std::map<std::string, double> kBytes{
      {"kB", 1e3},     {"MB", 1e6},     {"GB", 1e9},     {"TB", 1e12},
      {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}};
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || !std::isfinite(value) || value <= 0) return false;
  const std::string unit{end, text.data() + text.size()};
  const auto seconds = kSeconds.find(unit);
  const auto bytes = kBytes.find(unit);
  if (seconds != kSeconds.end() && value * seconds->second < 1e9) {
    rotation.ns = static_cast<int64_t>(value * seconds->second * 1e9);
    return rotation.ns > 0;
  }
  if (bytes != kBytes.end() && value * bytes->second < 1e18) {
    rotation.bytes = static_cast<uint64_t>(value * bytes->second);
    return rotation.bytes > 0;
  }
  return false;
}

std::string FileName::of(uint32_t stream, uint64_t number, int64_t time_ns) const {
  std::string name = pattern_;
  replace_all(name, "{stream}", std::to_string(stream));
  replace_all(name, "{number}", fmt::format("{:04}", number));
  replace_all(name, "{time}", utc_text(time_ns, 3));
  if (number > 0 && !tells_number() && !tells_time()) name += fmt::format(".{:04}", number);
  return name;
}

FileName FileName::folder() const {
  const size_t end = pattern_.rfind('/');
  if (end == std::string::npos) return FileName{"."};
  return FileName{pattern_.substr(0, end == 0 ? 1 : end)};
}

std::string FileName::unknown() const {
  std::string rest = pattern_;
  for (const char* word : {"{stream}", "{number}", "{time}"}) replace_all(rest, word, "");
  const size_t open = rest.find('{');
  if (open == std::string::npos) return {};
  const size_t close = rest.find('}', open);
  return close == std::string::npos ? std::string{} : rest.substr(open, close - open + 1);
}

}  // namespace weft::stream
