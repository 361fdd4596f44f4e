// What packets of a stream look like, and what a receiver reads in their headers: the number, and
// who sent them. docs/streams-reference.md has the bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stream/format/field.h"

namespace weft::stream {

using Packet = std::span<std::byte>;
using ConstPacket = std::span<const std::byte>;

enum class Format : uint8_t {
  rsp = 1,     // LOFAR's Remote Station Processing boards
  spead = 2,   // each packet a part of a heap
  raw = 3,     // a header of any kind that has a counter
  vdif = 4,    // frames of VLBI
  lofar2 = 5,  // LOFAR 2.0's Station Digital Processor
};
inline constexpr std::array kFormats{Format::rsp, Format::spead, Format::raw, Format::vdif,
                                     Format::lofar2};
const char* name_of(Format format);
// Throws kit::Failure for a name that no format has.
Format format_of(std::string_view name);

// Where a header has a number of which its format leaves the place open.
struct Place {
  uint32_t at = 0;     // byte of the header; SPEAD: the item's name
  uint32_t bytes = 0;  // of the word, 1 to 8; 0: nobody has told
  ByteOrder order = ByteOrder::big;
  uint32_t shift = 0;  // of the number's lowest bit in the word
  uint64_t step = 1;   // the number is what stands there, divided by this
  uint32_t bits = 0;   // of the number; 0: all of the word from `shift` on

  bool told() const { return bytes != 0; }
  uint32_t end() const { return at + bytes; }
  friend bool operator==(const Place&, const Place&) = default;
};
// "OFFSET:BYTES[:ORDER[:SHIFT[:STEP[:BITS]]]]", as 0:8:be:16:1, or of SPEAD "ITEM[:STEP]", as
// 0x1600:4096, or of VDIF "thread". Throws kit::Failure.
Place place_of(Format format, const std::string& text);
std::string text_of(Format format, const Place& place);

// The shape of a stream's packets, the same on both sides.
struct Shape {
  Format format = Format::rsp;
  // RSP and LOFAR 2.0: beamlets x slices x 2 polarisations x (real, imaginary) of so many bits.
  uint32_t beamlets = 61;
  uint32_t slices = 16;
  uint32_t bits = 16;
  // The same: MHz of the station's sample clock, 160 or 200; 0: each packet says it.
  uint32_t clock = 0;
  // SPEAD, raw and VDIF.
  uint32_t payload = 8192;
  uint32_t heap_packets = 1;  // SPEAD: packets of a heap
  // Raw: bytes before the payload; 0: as many as the numbers need.
  uint32_t header = 0;
  // Raw: the packet's number; untold: the first 8 bytes, big-endian unless packets show that they
  // are not. SPEAD: the heap's; untold: its counter.
  Place number;
  // Raw, SPEAD and, told in any way, VDIF's thread: which of the receiver's streams it is of;
  // untold: each stream has a port.
  Place stream_number;
  // SPEAD: bits of an item's value, 40 or 48, and items that a packet has at most.
  uint32_t address_bits = 48;
  uint32_t items = 15;
  // VDIF: frames of a stream in a second; headers of 16 bytes; VTP's sequence number before each.
  uint32_t frames_per_second = 0;
  bool legacy = false;
  bool vtp = false;

  uint32_t header_bytes() const;
  uint32_t payload_bytes() const;
  uint32_t packet_bytes() const { return header_bytes() + payload_bytes(); }
  // Throws kit::Failure for a shape that no packet has.
  void check() const;
  // Packets a second of a stream, as its instrument sends it.
  double packets_per_second() const;
  // The number of the packet that is due at this time, in ns since 1970.
  uint64_t number_at(int64_t ns) const;
  // Whether there is something that nobody has told and packets show: raw's order of bytes.
  bool is_open() const;
  // What a receiver looks at, with what nobody has told filled in. All else is as in no shape.
  Shape essentials() const;
  // Whether packets say which stream they are of, so that one port serves all.
  bool names_streams() const { return stream_number.told(); }
  // Whether a receiver that asks for this shape takes what a sender of that one sends.
  bool takes(const Shape& sent) const;
  // This shape, with what it leaves open as it is in one that it takes.
  Shape closed_by(const Shape& sent) const;
  friend bool operator==(const Shape&, const Shape&) = default;
};

// Who sent a packet, as far as its header tells. All packets of a stream have the same.
struct Origin {
  uint32_t station = 0;
  uint32_t unit = 0;   // a part of it that sends for itself, as RSP's boards
  uint32_t clock = 0;  // MHz
  friend bool operator==(const Origin&, const Origin&) = default;
};

enum class Verdict : uint8_t {
  good,
  flagged,      // it has a number, but its sender says that its samples are not valid
  foreign,      // it has a number, but comes from another source than was asked for
  wrong_size,   // longer or shorter than the shape
  wrong_kind,   // not of this format or version
  wrong_shape,  // of other samples or fields than were asked for
  control,      // it is not meant to have samples
  no_time,      // a number that is nobody's clock. RSP: no time, or more slices than a second has
};
inline constexpr uint32_t kLargestPacket = 65'507;  // bytes of a UDP datagram
// Numbers of packets are below it; more is nobody's clock.
inline constexpr uint64_t kMostNumber = uint64_t{1} << 62;

struct Header {
  Verdict verdict = Verdict::wrong_size;
  uint64_t number = 0;  // of good, flagged and foreign ones
  Origin origin;        // of these
  // Of what names its stream.
  std::optional<uint64_t> stream;
  // The bits that `number` has, the lowest ones; 64: all. A counter of fewer begins again.
  uint32_t bits = 64;

  bool has_number() const { return verdict <= Verdict::flagged; }
  bool is(uint64_t n) const {
    return has_number() && number == (bits < 64 ? n % (uint64_t{1} << bits) : n);
  }
};

// The number whose low bits these are, closest to `next`. `bits`: below 64.
uint64_t closest_number(uint64_t next, uint64_t low, unsigned bits);

// Writes the header of packet `number` of a stream into its first header_bytes().
void write_header(const Shape& shape, uint32_t stream, uint64_t number, Packet packet);
// Copies a packet that has a number to where packet_bytes() are kept.
void copy_packet(const Shape& shape, ConstPacket from, std::byte* to);
// Makes a packet the one that comes `by` numbers later; a multiple of a heap's packets.
void advance(const Shape& shape, uint64_t by, Packet packet);
// What the header of a packet says. Any bytes may come.
Header read_header(const Shape& shape, ConstPacket packet);
// The number in it. Nothing when it is no packet of this shape.
std::optional<uint64_t> number_of(const Shape& shape, ConstPacket packet);
// Why a packet is none of this shape, for people: what it has, and what was asked for.
std::string explain(const Shape& shape, ConstPacket packet);
// How many packets show what an open shape leaves open.
inline constexpr size_t kPacketsToLearn = 8;
// A shape that leaves nothing open: with what the first packets of a stream show, which have its
// size. Where they show nothing, or there are none, it is the usual.
Shape learned(const Shape& shape, std::span<const ConstPacket> first);
// The numbers of a header by the names that its format has for them. Any bytes may come.
std::vector<std::pair<std::string, uint64_t>> fields_of(const Shape& shape, ConstPacket packet);
// An origin's facts by the names that its format has for them.
std::vector<std::pair<std::string, uint64_t>> facts_of(Format format, const Origin& origin);

}  // namespace weft::stream
