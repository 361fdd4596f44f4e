// How a user says where a number is.
#include <fmt/format.h>

#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "base/number_in.h"
#include "kit/failure.h"
#include "stream/packet.h"

namespace weft::stream {
namespace {

constexpr uint64_t kMost = uint64_t{1} << 24;  // of what is no step
constexpr uint32_t kItemBytes = 8;

std::vector<std::string_view> parts_of(std::string_view text) {
  std::vector<std::string_view> parts;
  for (;;) {
    const size_t colon = text.find(':');
    parts.push_back(text.substr(0, colon));
    if (colon == std::string_view::npos) return parts;
    text.remove_prefix(colon + 1);
  }
}

// Decimal, or hexadecimal behind 0x.
std::optional<uint64_t> number_of(std::string_view text) {
  return text.starts_with("0x") ? number_in<uint64_t>(text.substr(2), 16)
                                : number_in<uint64_t>(text);
}

std::optional<Place> place_in_header(const std::vector<std::string_view>& parts) {
  constexpr size_t kOrder = 2;
  constexpr size_t kStep = 4;
  std::array<uint64_t, 6> numbers{0, 0, 0, 0, 1, 0};
  if (parts.size() < 2 || parts.size() > numbers.size()) return std::nullopt;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i == kOrder) continue;
    const auto number = number_of(parts[i]);
    if (!number || (i != kStep && *number > kMost)) return std::nullopt;
    numbers[i] = *number;
  }
  const std::string_view order = parts.size() > kOrder ? parts[kOrder] : "be";
  if ((order != "be" && order != "le") || numbers[1] == 0) return std::nullopt;
  return Place{.at = static_cast<uint32_t>(numbers[0]),
               .bytes = static_cast<uint32_t>(numbers[1]),
               .order = order == "le" ? ByteOrder::little : ByteOrder::big,
               .shift = static_cast<uint32_t>(numbers[3]),
               .step = numbers[kStep],
               .bits = static_cast<uint32_t>(numbers[5])};
}

std::optional<Place> item(const std::vector<std::string_view>& parts) {
  if (parts.size() > 2) return std::nullopt;
  const auto name = number_of(parts[0]);
  const auto step = parts.size() > 1 ? number_of(parts[1]) : std::optional<uint64_t>{1};
  if (!name || *name >= kMost || !step) return std::nullopt;
  return Place{.at = static_cast<uint32_t>(*name), .bytes = kItemBytes, .step = *step};
}

[[noreturn]] void refuse(const std::string& text, const char* what_it_is) {
  throw kit::Failure{fmt::format("'{}' is not {}", text, what_it_is)};
}

}  // namespace

Place place_of(Format format, const std::string& text) {
  switch (format) {
    case Format::raw:
      if (const auto place = place_in_header(parts_of(text))) return *place;
      refuse(text, "OFFSET:BYTES[:be|le[:SHIFT[:STEP[:BITS]]]], as 0:8:be:16:1");
    case Format::spead:
      if (const auto place = item(parts_of(text))) return *place;
      refuse(text, "ITEM[:STEP], as 0x1600:4096");
    case Format::vdif:
      // Where VDIF has it.
      if (text == "thread") return {.at = 0, .bytes = 4};
      refuse(text, "thread");
    default:
      throw kit::Failure{"packets of this format have their numbers in one place"};
  }
}

std::string text_of(Format format, const Place& place) {
  if (format == Format::vdif) return "thread";
  if (format == Format::spead) return fmt::format("{:#x}:{}", place.at, place.step);
  std::string text = fmt::format("{}:{}:{}", place.at, place.bytes,
                                 place.order == ByteOrder::little ? "le" : "be");
  if (place.shift != 0 || place.step != 1 || place.bits != 0) {
    text += fmt::format(":{}:{}", place.shift, place.step);
  }
  if (place.bits != 0) text += fmt::format(":{}", place.bits);
  return text;
}

}  // namespace weft::stream
