#include "base/fault_spec.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <iterator>

#include "base/number_in.h"

namespace weft {
namespace {

// One word of the text. Exactly one of the members is set.
struct Word {
  std::string_view name;
  double FaultSpec::*share = nullptr;
  double FaultSpec::*count = nullptr;
  Duration FaultSpec::*time = nullptr;
  uint64_t FaultSpec::*number = nullptr;
  FaultDirection FaultSpec::*direction = nullptr;
  std::string_view sentence;

  const char* accepted() const {
    if (share != nullptr) return "a share from 0 to 1, such as 0.01, 1e-3 or 2%";
    if (count != nullptr) return "a number from 1 to 10000";
    if (time != nullptr) return "a time up to 60 s with its unit: ns, us, ms or s";
    if (direction != nullptr) return "in, out or both";
    return "a whole number";
  }
};

constexpr Word kWords[] = {
    {.name = "loss", .share = &FaultSpec::loss, .sentence = "share of datagrams that vanish"},
    {.name = "burst",
     .count = &FaultSpec::burst,
     .sentence = "so many vanish in a row, on average"},
    {.name = "duplicate", .share = &FaultSpec::duplicate, .sentence = "share that comes twice"},
    {.name = "reorder", .share = &FaultSpec::reorder, .sentence = "share that others may overtake"},
    {.name = "reorder_delay",
     .time = &FaultSpec::reorder_delay,
     .sentence = "how much longer these take at most"},
    {.name = "delay",
     .time = &FaultSpec::delay,
     .sentence = "how long every datagram waits, and on TCP what comes or goes after a pause"},
    {.name = "jitter", .time = &FaultSpec::jitter, .sentence = "added to it, 0 to this much"},
    {.name = "corrupt",
     .share = &FaultSpec::corrupt,
     .sentence = "share in which 1 to 3 bits are flipped"},
    {.name = "split",
     .share = &FaultSpec::split,
     .sentence = "share of the calls on TCP that move a part only"},
    {.name = "way",
     .direction = &FaultSpec::direction,
     .sentence = "in, out or both: what comes to this process, what it sends, or all"},
    {.name = "seed", .number = &FaultSpec::seed, .sentence = "the same seed makes the same faults"},
};

struct NamedDirection {
  std::string_view name;
  FaultDirection direction;
};
constexpr NamedDirection kDirections[] = {
    {"both", FaultDirection::both}, {"in", FaultDirection::in}, {"out", FaultDirection::out}};

struct Unit {
  std::string_view name;
  double ns;
};
constexpr Unit kUnits[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
constexpr double kMostTime = 60e9;
constexpr double kMostBurst = 10000;

// A number at the front of `text`, which is then what stands behind it.
bool take_number(std::string_view& text, double& value) {
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{}) return false;
  text.remove_prefix(static_cast<size_t>(stopped - text.data()));
  return true;
}

bool set_share(FaultSpec& spec, const Word& w, std::string_view text) {
  double v = 0;
  if (!take_number(text, v)) return false;
  if (text == "%") {
    v /= 100;
  } else if (!text.empty()) {
    return false;
  }
  if (!(v >= 0 && v <= 1)) return false;
  spec.*w.share = v;
  return true;
}

bool set_count(FaultSpec& spec, const Word& w, std::string_view text) {
  double v = 0;
  if (!take_number(text, v) || !text.empty() || !(v >= 1 && v <= kMostBurst)) return false;
  spec.*w.count = v;
  return true;
}

bool set_time(FaultSpec& spec, const Word& w, std::string_view text) {
  double v = 0;
  if (!take_number(text, v)) return false;
  for (const Unit& u : kUnits) {
    if (u.name != text) continue;
    v *= u.ns;
    if (!(v >= 0 && v <= kMostTime)) return false;
    spec.*w.time = Duration{static_cast<int64_t>(v)};
    return true;
  }
  return false;
}

bool set_number(FaultSpec& spec, const Word& w, std::string_view text) {
  const auto v = number_in<uint64_t>(text);
  if (!v) return false;
  spec.*w.number = *v;
  return true;
}

bool set_direction(FaultSpec& spec, const Word& w, std::string_view text) {
  for (const NamedDirection& known : kDirections) {
    if (known.name != text) continue;
    spec.*w.direction = known.direction;
    return true;
  }
  return false;
}

bool set(FaultSpec& spec, const Word& w, std::string_view text) {
  if (w.share != nullptr) return set_share(spec, w, text);
  if (w.count != nullptr) return set_count(spec, w, text);
  if (w.time != nullptr) return set_time(spec, w, text);
  if (w.direction != nullptr) return set_direction(spec, w, text);
  return set_number(spec, w, text);
}

std::string in_quotes(std::string_view text) {
  return "'" + std::string(text) + "'";
}

// The shortest text that reads back as the same number.
std::string number_text(double v) {
  std::array<char, 64> text;
  const auto done = std::to_chars(text.data(), text.data() + text.size(), v);
  return {text.data(), done.ptr};
}

std::string_view name_of(FaultDirection direction) {
  return std::find_if(std::begin(kDirections), std::end(kDirections),
                      [=](const NamedDirection& known) { return known.direction == direction; })
      ->name;
}

// In the largest unit of which it is a whole number.
std::string time_text(Duration time) {
  const auto ns = static_cast<uint64_t>(time.count());
  size_t i = std::size(kUnits) - 1;
  while (i > 0 && ns % static_cast<uint64_t>(kUnits[i].ns) != 0) --i;
  return std::to_string(ns / static_cast<uint64_t>(kUnits[i].ns)) + std::string(kUnits[i].name);
}

std::string value_text(const FaultSpec& spec, const Word& w) {
  if (w.share != nullptr) return number_text(spec.*w.share);
  if (w.count != nullptr) return number_text(spec.*w.count);
  if (w.number != nullptr) return std::to_string(spec.*w.number);
  if (w.direction != nullptr) return std::string(name_of(spec.*w.direction));
  return time_text(spec.*w.time);
}

}  // namespace

Result<FaultSpec, std::string> FaultSpec::parse(std::string_view text) {
  FaultSpec spec;
  std::array<bool, std::size(kWords)> seen{};
  while (!text.empty()) {
    const size_t comma = text.find(',');
    const std::string_view word = text.substr(0, comma);
    text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
    const size_t colon = word.find(':');
    const std::string_view name = word.substr(0, colon);
    size_t i = 0;
    while (i < std::size(kWords) && kWords[i].name != name) ++i;
    if (i < std::size(kWords) && colon == std::string_view::npos) {
      return fail("the fault " + in_quotes(word) + " has no value; write " + std::string(name) +
                  ":VALUE");
    }
    if (i == std::size(kWords)) {
      return fail("no fault is called " + in_quotes(word) + "; there are " + fault_spec_help());
    }
    if (seen[i]) return fail(in_quotes(name) + " stands there twice");
    seen[i] = true;
    const std::string_view value = word.substr(colon + 1);
    if (!set(spec, kWords[i], value)) {
      return fail(in_quotes(value) + " is no value for fault " + in_quotes(name) +
                  ", which takes " + kWords[i].accepted());
    }
  }
  return spec;
}

std::string FaultSpec::to_string() const {
  const FaultSpec plain;
  std::string text;
  for (const Word& w : kWords) {
    const std::string value = value_text(*this, w);
    if (value == value_text(plain, w)) continue;
    if (!text.empty()) text += ',';
    text.append(w.name).append(":").append(value);
  }
  return text;
}

std::string fault_spec_help() {
  std::string text;
  for (const Word& w : kWords) {
    if (!text.empty()) text += ", ";
    text.append(w.name).append(" (").append(w.sentence).append(")");
  }
  return text;
}

}  // namespace weft
