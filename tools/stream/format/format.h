// What a receiver and a sender have to know of a format of packets, and nothing else of weft knows.
// A format is a file of this folder: the table of its header's fields, and how they make a number.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "stream/format/field.h"
#include "stream/packet.h"
#include "stream/sample_time.h"

namespace weft::stream {

struct FormatRules {
  const char* name;
  // What Origin::unit is of this format; null: it tells neither station nor unit.
  const char* unit;
  // When packet 0 was due, in seconds since 1970.
  int64_t begins_s = 0;
  // The table: fields that have the same place in every packet of a shape.
  std::vector<Field> (*fields)(const Shape&);

  uint32_t (*header_bytes)(const Shape&);
  uint32_t (*payload_bytes)(const Shape&);
  // Throws kit::Failure for a shape that no packet has.
  void (*check)(const Shape&);
  // As Shape::essentials().
  Shape (*essentials)(const Shape&);
  // Packets a second of a stream as its instrument sends it.
  double (*packets_per_second)(const Shape&);

  // As the functions of packet.h that have their names. A packet that is read or explained has
  // packet_bytes(), unless packets of this format say how large they are: then any.
  Header (*read)(const Shape&, ConstPacket packet);
  void (*write)(const Shape&, uint32_t stream, uint64_t number, std::byte* packet);
  void (*advance)(const Shape&, uint64_t by, std::byte* packet);
  std::string (*explain)(const Shape&, ConstPacket packet);
  // What the first packets of a stream show of a shape that is open; null: none is.
  Shape (*learn)(const Shape&, std::span<const ConstPacket> first) = nullptr;
  // Of packets that say how large they are; null: all have packet_bytes().
  void (*copy)(const Shape&, ConstPacket from, std::byte* to) = nullptr;

  // When the first sample of a packet that has a number was taken: ns since 1970. Null: packets do
  // not tell.
  int64_t (*time_ns)(const Shape&, const std::byte* packet) = nullptr;
  // From one packet of such a format to the next, of this origin.
  PacketPeriod (*period)(const Shape&, const Origin&) = nullptr;
};

extern const FormatRules kRsp;
extern const FormatRules kSpead;
extern const FormatRules kRaw;
extern const FormatRules kVdif;
extern const FormatRules kLofar2;

const FormatRules& rules_of(Format format);

}  // namespace weft::stream
