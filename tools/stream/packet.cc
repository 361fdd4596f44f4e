#include "stream/packet.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "kit/failure.h"
#include "stream/format/format.h"

namespace weft::stream {

const FormatRules& rules_of(Format format) {
  switch (format) {
    case Format::rsp:
      return kRsp;
    case Format::spead:
      return kSpead;
    case Format::raw:
      break;
    case Format::vdif:
      return kVdif;
    case Format::lofar2:
      return kLofar2;
  }
  return kRaw;
}

const char* name_of(Format format) {
  return rules_of(format).name;
}

Format format_of(std::string_view name) {
  for (const Format format : kFormats) {
    if (name == name_of(format)) return format;
  }
  throw kit::Failure{fmt::format("there is no format '{}'", name)};
}

uint32_t Shape::header_bytes() const {
  return rules_of(format).header_bytes(*this);
}

uint32_t Shape::payload_bytes() const {
  return rules_of(format).payload_bytes(*this);
}

void Shape::check() const {
  rules_of(format).check(*this);
  if (packet_bytes() > kLargestPacket) {
    throw kit::Failure{fmt::format("a packet has at most {} bytes", kLargestPacket)};
  }
}

double Shape::packets_per_second() const {
  return rules_of(format).packets_per_second(*this);
}

uint64_t Shape::number_at(int64_t ns) const {
  const double s = static_cast<double>(ns) * 1e-9 - static_cast<double>(rules_of(format).begins_s);
  return static_cast<uint64_t>(std::max(s, 0.0) * packets_per_second());
}

bool Shape::is_open() const {
  return rules_of(format).learn != nullptr && !number.told() && !names_streams();
}

Shape Shape::essentials() const {
  return rules_of(format).essentials(*this);
}

bool Shape::takes(const Shape& sent) const {
  if (format != sent.format) return false;
  const Shape ours = closed_by(sent).essentials();
  Shape theirs = sent.essentials();
  // Each packet says its clock itself, where nobody asks for one.
  if (ours.clock == 0 || theirs.clock == 0) theirs.clock = ours.clock;
  return theirs == ours;
}

Shape Shape::closed_by(const Shape& sent) const {
  Shape closed = learned(*this, {});
  if (is_open()) closed.number.order = sent.essentials().number.order;
  return closed;
}

uint64_t closest_number(uint64_t next, uint64_t low, unsigned bits) {
  const uint64_t turn = uint64_t{1} << bits;
  const uint64_t candidate = (next & ~(turn - 1)) | low;
  if (candidate + turn / 2 < next) return candidate + turn;
  if (candidate > next + turn / 2 && candidate >= turn) return candidate - turn;
  return candidate;
}

void write_header(const Shape& shape, uint32_t stream, uint64_t number, Packet packet) {
  rules_of(shape.format).write(shape, stream, number, packet.data());
}

void advance(const Shape& shape, uint64_t by, Packet packet) {
  rules_of(shape.format).advance(shape, by, packet.data());
}

void copy_packet(const Shape& shape, ConstPacket from, std::byte* to) {
  const FormatRules& rules = rules_of(shape.format);
  if (rules.copy != nullptr && from.size() != shape.packet_bytes()) {
    rules.copy(shape, from, to);
  } else {
    std::memcpy(to, from.data(), from.size());
  }
}

Header read_header(const Shape& shape, ConstPacket packet) {
  const FormatRules& rules = rules_of(shape.format);
  if (rules.copy == nullptr && packet.size() != shape.packet_bytes()) {
    return {.verdict = Verdict::wrong_size};
  }
  Header header = rules.read(shape, packet);
  if (header.has_number() && header.number >= kMostNumber) header.verdict = Verdict::no_time;
  return header;
}

std::optional<uint64_t> number_of(const Shape& shape, ConstPacket packet) {
  const Header header = read_header(shape, packet);
  return header.has_number() ? std::optional{header.number} : std::nullopt;
}

std::string explain(const Shape& shape, ConstPacket packet) {
  const FormatRules& rules = rules_of(shape.format);
  if (rules.copy == nullptr && packet.size() != shape.packet_bytes()) {
    return fmt::format("{} bytes, not {}", packet.size(), shape.packet_bytes());
  }
  return rules.explain(shape, packet);
}

Shape learned(const Shape& shape, std::span<const ConstPacket> first) {
  return shape.is_open() ? rules_of(shape.format).learn(shape, first) : shape;
}

std::vector<std::pair<std::string, uint64_t>> fields_of(const Shape& shape, ConstPacket packet) {
  std::vector<std::pair<std::string, uint64_t>> fields;
  for (const Field& field : rules_of(shape.format).fields(shape)) {
    if (field.end() <= packet.size()) fields.emplace_back(field.name, field.get(packet.data()));
  }
  return fields;
}

std::vector<std::pair<std::string, uint64_t>> facts_of(Format format, const Origin& origin) {
  std::vector<std::pair<std::string, uint64_t>> facts;
  if (const char* const unit = rules_of(format).unit) {
    facts = {{"station", origin.station}, {unit, origin.unit}};
  }
  if (origin.clock != 0) facts.emplace_back("clock", origin.clock);
  return facts;
}

}  // namespace weft::stream
