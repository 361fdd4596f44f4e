// Where a sender's packets come from. All throw kit::Failure.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "stream/packet.h"

namespace weft::stream {

// Streams are counted from 0 among those of a sender.
class Source {
 public:
  Source() = default;
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
  virtual ~Source() = default;

  // Of its packets, with nothing left open.
  virtual Shape shape() const = 0;
  // Of sources whose packets bring their numbers along: the one of the stream's next packet.
  // Nothing when there is none left.
  virtual std::optional<uint64_t> own_number(uint32_t) { return std::nullopt; }
  virtual bool has_own_numbers() const { return false; }
  // Where a session has to begin that sends this packet and those behind it: they may have
  // overtaken each other.
  virtual std::optional<uint64_t> lowest_own_number(uint32_t) { return std::nullopt; }
  // When that packet was taken, in ns since 1970, of sources that know; nothing when none is left.
  virtual std::optional<int64_t> own_time_ns(uint32_t) { return std::nullopt; }
  virtual bool has_own_times() const { return false; }
  // Writes packet `number`, header and all; false when there are no more data. Of a source with
  // numbers of its own: the next packet, and turns to the one behind it.
  virtual bool fill(uint32_t stream, uint64_t number, Packet packet) = 0;
  // What came from outside and is no packet of this shape.
  virtual uint64_t unusable() const { return 0; }
  // Why it ended before its end, for people; empty when it did not.
  virtual std::string error() const { return {}; }
};

struct SourceOptions {
  std::string file;  // payload, the same for each stream
  std::string pcap;  // packets: the UDP datagrams of a capture; a stream for each destination port
  std::vector<std::string> recordings;  // packets one after the other: a file for each stream
  // Packets of captures and recordings that were taken before are left out: ns since 1970.
  std::optional<int64_t> start;
  bool loop = false;  // files begin again at their end
};

// `first_stream`: what the receiver calls the first of them.
std::unique_ptr<Source> make_source(const SourceOptions& options, const Shape& shape,
                                    uint32_t first_stream, uint32_t streams);
std::unique_ptr<Source> make_pcap_source(const SourceOptions& options, const Shape& shape,
                                         uint32_t streams);

// A file, as bytes in memory; one whose name ends in ".zst" is decompressed, into a file without a
// name in TMPDIR or /var/tmp.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path);
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();
  ConstPacket bytes() const { return bytes_; }

 private:
  ConstPacket bytes_;
};

}  // namespace weft::stream
