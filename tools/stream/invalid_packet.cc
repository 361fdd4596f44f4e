#include "stream/invalid_packet.h"

#include <fmt/format.h>

#include <algorithm>

namespace weft::stream {
namespace {

constexpr size_t kShownOfHeader = 48;  // bytes

std::string in_hex(ConstPacket packet) {
  std::string text;
  for (const std::byte b : packet.first(std::min(packet.size(), kShownOfHeader))) {
    text += fmt::format("{}{:02x}", text.empty() ? "" : " ", std::to_integer<unsigned>(b));
  }
  return text;
}

}  // namespace

nlohmann::json as_json(const std::vector<std::pair<std::string, uint64_t>>& numbers) {
  auto json = nlohmann::json::object();
  for (const auto& [name, value] : numbers) json[name] = value;
  return json;
}

InvalidPacket invalid_packet(const Shape& shape, ConstPacket packet) {
  return {.reason = explain(shape, packet),
          .fields = as_json(fields_of(shape, packet)),
          .header = in_hex(packet)};
}

}  // namespace weft::stream
