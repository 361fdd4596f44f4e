// What a file of one stream looks like: its header, and what becomes of packets.
// docs/streams-reference.md has the bytes.
#pragma once

#include <memory>
#include <type_traits>
#include <vector>

#include "stream/output/block_view.h"
#include "stream/output/header_file.h"
#include "stream/output/output_options.h"

namespace weft::stream {

using Bytes = std::vector<std::byte>;

// What a header can tell of a file.
struct FileFacts {
  Shape shape;
  uint32_t stream = 0;
  Origin origin;
  std::string name;
  uint64_t file = 0;           // of this receiver and stream, from 0 on
  uint64_t observation = 0;    // number of the first packet that goes on up to this file
  int64_t observation_ns = 0;  // when it was taken
  PacketPeriod period;
  uint64_t first = 0;       // number of the file's first packet
  uint64_t packets = 0;     // in the file, so far
  uint64_t missing = 0;     // between these
  uint64_t most_bytes = 0;  // that it may have; 0: any
};

class FileLayout {
 public:
  FileLayout() = default;
  FileLayout(const FileLayout&) = delete;
  FileLayout& operator=(const FileLayout&) = delete;
  virtual ~FileLayout() = default;

  // A file has whole blocks, also where they begin or end with packets that are missing.
  virtual bool whole_blocks() const { return false; }
  // Something stands in the place of packets of which no block is there.
  virtual bool fills() const { return true; }
  // So many packets have in a file, at most.
  virtual uint64_t most_bytes(const Shape& shape, uint64_t packets) const {
    return packets * shape.packet_bytes();
  }
  // Before the first packet.
  virtual void begin(const FileFacts&, Bytes& /*out*/) {}
  // In the place of what begin() wrote, as many bytes; nothing: that stays. `data`: bytes behind
  // it.
  virtual void end(const FileFacts&, uint64_t /*data*/, Bytes& /*out*/) {}
  // Packets `from` to `to` of a block.
  virtual void add(const FileFacts&, const BlockView&, uint32_t from, uint32_t to, Bytes& out) = 0;
  // Packets of which no block is there, of layouts that fill.
  virtual void add_missing(const FileFacts&, uint64_t /*number*/, uint64_t /*packets*/,
                           Bytes& /*out*/) {}
};

// Throws kit::Failure for packets that this layout cannot have.
std::unique_ptr<FileLayout> make_file_layout(Layout layout, const Shape& shape,
                                             const HeaderFile& header);

std::unique_ptr<FileLayout> make_packets_layout();
std::unique_ptr<FileLayout> make_dada_layout(const HeaderFile& header);
std::unique_ptr<FileLayout> make_guppi_layout(const HeaderFile& header);
std::unique_ptr<FileLayout> make_vdif_layout(const Shape& shape);

// --- samples of RSP's packets: of each beamlet, of each slice, one of both polarisations
// Bytes of such a sample.
inline uint32_t sample_bytes(const Shape& shape) {
  return 4 * shape.bits / 8;
}
// Calls `f` with that number as a constant, so that a copy of a sample is one move.
template <class F>
void by_sample_bytes(const Shape& shape, F&& f) {
  switch (sample_bytes(shape)) {
    case 8:
      return f(std::integral_constant<size_t, 8>{});
    case 4:
      return f(std::integral_constant<size_t, 4>{});
    default:
      return f(std::integral_constant<size_t, 2>{});
  }
}

}  // namespace weft::stream
