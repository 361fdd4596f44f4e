// What a receiver writes into files, and when it begins another one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace weft::stream {

enum class Layout : uint8_t {
  blocks,   // as in the ring, each behind its header; all streams in a file
  packets,  // those that came, one after the other: a recording
  dada,     // PSRDADA
  guppi,    // GUPPI raw
  vdif,     // VDIF frames
};

// A file ends when one of these is reached; 0: never. Times are those of the data: files begin at
// their multiples since 1970, so that those of all streams and receivers begin together.
struct Rotation {
  int64_t ns = 0;
  uint64_t bytes = 0;
  bool any() const { return ns != 0 || bytes != 0; }
};
// "10s", "5min", "1h", "500MB", "2GiB"; adds to what is there. False for anything else.
bool parse_rotation(const std::string& text, Rotation& rotation);

// A name of files: {stream}, {number} (at least 4 digits, from 0 on) and {time} (of the file's
// first packet, as 2026-11-25T09:30:00.123) stand for what they say.
class FileName {
 public:
  explicit FileName(std::string pattern) : pattern_(std::move(pattern)) {}
  // Without {number} and {time}, all but the first one have their number behind the name.
  std::string of(uint32_t stream, uint64_t number, int64_t time_ns) const;
  bool tells_stream() const { return has("{stream}"); }
  bool tells_number() const { return has("{number}"); }
  bool tells_time() const { return has("{time}"); }
  // That of the folder; "." where there is none in it.
  FileName folder() const;
  // What stands in braces and is none of these; empty: nothing does.
  std::string unknown() const;

 private:
  bool has(const std::string& word) const { return pattern_.find(word) != std::string::npos; }

  std::string pattern_;
};

}  // namespace weft::stream
