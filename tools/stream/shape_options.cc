#include "stream/shape_options.h"

#include "cli/command_line.h"
#include "kit/failure.h"

namespace weft::stream {
namespace {

std::map<std::string, Format> formats_by_name() {
  std::map<std::string, Format> formats;
  for (const Format format : kFormats) formats[name_of(format)] = format;
  return formats;
}

std::string list_of_formats() {
  std::vector<std::string> names;
  names.reserve(kFormats.size());
  for (const Format format : kFormats) names.emplace_back(name_of(format));
  return cli::list_of(names);
}

}  // namespace

ShapeOptions::ShapeOptions(CLI::App& command, Shape& shape) : shape_(shape) {
  command.add_option("--format", shape.format, "What packets look like: " + list_of_formats())
      ->transform(cli::one_of(formats_by_name()))
      ->default_str("rsp");
  // The widest of all formats; what a packet of this one may have is for Shape::check().
  beamlets_ = command
                  .add_option("--beamlets", shape.beamlets,
                              "RSP and LOFAR 2.0: beamlets of a packet; without: 61, and of "
                              "LOFAR 2.0 488")
                  ->check(cli::between(1U, 65'535U));
  slices_ = command
                .add_option("--slices", shape.slices,
                            "RSP and LOFAR 2.0: time slices of a packet; without: 16 and 4")
                ->check(cli::between(1U, 255U));
  bits_ = command
              .add_option("--bits", shape.bits,
                          "RSP, LOFAR 2.0: of a sample's real part, 4, 8 or 16; without: 16 and "
                          "8. VDIF: what a sender writes")
              ->check(cli::between(1U, 32U));
  command
      .add_option("--clock", shape.clock,
                  "RSP and LOFAR 2.0: MHz of the station's clock, 160 or 200; without: each packet "
                  "says it, and "
                  "what is sent without a capture has 200")
      ->type_name("MHZ")
      ->check(cli::between(160U, 200U));
  command.add_option("--payload", shape.payload, "SPEAD, raw and VDIF: bytes behind the header")
      ->check(cli::between(1U, kLargestPacket))
      ->capture_default_str();
  command.add_option("--heap-packets", shape.heap_packets, "SPEAD: packets of a heap")
      ->check(cli::between(1U, UINT32_MAX))
      ->capture_default_str();
  command
      .add_option("--items", shape.items,
                  "SPEAD: for so many items there is room before the payload")
      ->check(cli::between(1U, 512U))
      ->capture_default_str();
  command
      .add_option("--address-bits", shape.address_bits, "SPEAD: bits of an item's value, 40 or 48")
      ->check(cli::between(40U, 48U))
      ->capture_default_str();
  command.add_option("--frames-per-second", shape.frames_per_second, "VDIF: of a stream")
      ->check(cli::between(1U, 1U << 24));
  command.add_flag("--legacy", shape.legacy, "VDIF: headers have 16 bytes, not 32");
  command.add_flag("--vtp", shape.vtp, "VDIF: VTP's sequence number is before each frame");
  command
      .add_option("--header-bytes", shape.header,
                  "raw: bytes of the header; without: as many as the numbers need")
      ->type_name("BYTES")
      ->check(cli::between(1U, kLargestPacket));
  command
      .add_option("--number", number_,
                  "raw: where the header has the packet's number: OFFSET:BYTES, and "
                  "then be or le, shift, step, bits, as 0:8:be:16:1; without: 0:8, in the order "
                  "that packets show. SPEAD: which "
                  "item has the heap's, and its step, as 0x1600:4096; without: the heap counter")
      ->type_name("PLACE");
  command
      .add_option("--stream-number", stream_number_,
                  "raw and SPEAD: where the header has the stream's number, as --number; VDIF: "
                  "thread. All streams come to one port")
      ->type_name("PLACE");
}

void ShapeOptions::complete() {
  if (shape_.format == Format::lofar2) {
    // What its stations send.
    if (beamlets_->count() == 0) shape_.beamlets = 488;
    if (slices_->count() == 0) shape_.slices = 4;
    if (bits_->count() == 0) shape_.bits = 8;
  }
  try {
    if (!number_.empty()) shape_.number = place_of(shape_.format, number_);
    if (!stream_number_.empty()) shape_.stream_number = place_of(shape_.format, stream_number_);
    shape_.check();
  } catch (const kit::Failure& failure) {
    cli::wrong_usage(failure.what());
  }
}

}  // namespace weft::stream
