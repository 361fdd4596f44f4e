#include "stream/shape_options.h"

#include "bench/failure.h"
#include "cli/command_line.h"

namespace weft::stream {
namespace {

const std::map<std::string, Format> kFormats{
    {"rsp", Format::rsp}, {"spead", Format::spead}, {"raw", Format::raw}};

}  // namespace

ShapeOptions::ShapeOptions(CLI::App& command, Shape& shape) : shape_(shape) {
  command.add_option("--format", shape.format, "What packets look like: rsp, spead or raw")
      ->transform(cli::one_of(kFormats))
      ->default_str("rsp");
  command.add_option("--beamlets", shape.beamlets, "RSP: beamlets of a packet")
      ->capture_default_str();
  command.add_option("--slices", shape.slices, "RSP: time slices of a packet")
      ->capture_default_str();
  command.add_option("--bits", shape.bits, "RSP: of a sample's real part, 4, 8 or 16")
      ->capture_default_str();
  command
      .add_option("--clock", shape.clock,
                  "RSP: MHz of the station's clock, 160 or 200; without: each packet says it, and "
                  "what is sent without a capture has 200")
      ->type_name("MHZ");
  command.add_option("--payload", shape.payload, "SPEAD and raw: bytes behind the header")
      ->capture_default_str();
  command.add_option("--heap-packets", shape.heap_packets, "SPEAD: packets of a heap")
      ->capture_default_str();
  command
      .add_option("--items", shape.items,
                  "SPEAD: for so many items there is room before the payload")
      ->capture_default_str();
  command
      .add_option("--address-bits", shape.address_bits, "SPEAD: bits of an item's value, 40 or 48")
      ->capture_default_str();
  command
      .add_option("--header-bytes", shape.header,
                  "raw: bytes of the header; without: as many as the numbers need")
      ->type_name("BYTES");
  command
      .add_option("--number", number_,
                  "raw: where the header has the packet's number: OFFSET:BYTES, and "
                  "then be or le, shift, step, bits, as 0:8:be:16:1; without: 0:8. SPEAD: which "
                  "item has the heap's, and its step, as 0x1600:4096; without: the heap counter")
      ->type_name("PLACE");
  command
      .add_option("--stream-number", stream_number_,
                  "raw and SPEAD: where the header has the stream's number, as --number; all "
                  "streams come to one port")
      ->type_name("PLACE");
}

void ShapeOptions::complete() {
  try {
    if (!number_.empty()) shape_.number = place_of(shape_.format, number_);
    if (!stream_number_.empty()) shape_.stream_number = place_of(shape_.format, stream_number_);
    shape_.check();
  } catch (const bench::Failure& failure) {
    cli::wrong_usage(failure.what());
  }
}

}  // namespace weft::stream
