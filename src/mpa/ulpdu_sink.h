// The conversation between MPA and the layer above it about one ULPDU (design/14):
// begin - where - where .. - deliver, or an error in between that ends the stream.
#pragma once

#include "base/bytes.h"
#include "base/io_vec.h"
#include "base/result.h"
#include "wire/terminate.h"

namespace weft::mpa {

using Verdict = Result<Ok, wire::TermError>;

class UlpduSink {
 public:
  virtual ~UlpduSink() = default;

  // Bytes of header that begin() needs, told by the first byte of the ULPDU.
  virtual size_t header_size(std::byte first) const = 0;
  // A ULPDU of `ulpdu` bytes arrives; `start` is its beginning: header_size() bytes, or all of it
  // if it is shorter.
  virtual Verdict begin(Bytes start, size_t ulpdu) = 0;
  // Where the payload bytes [offset, offset + length) of the ULPDU belong; called again for every
  // piece that comes, because memory may have been deregistered meanwhile. Appends to `places`
  // exactly `length` bytes.
  virtual Verdict where(size_t offset, size_t length, PieceList& places) = 0;
  // The memory that where() named cannot be reached. Why the stream ends.
  virtual wire::TermError unreachable() = 0;
  // All payload is placed and the CRC was right.
  virtual Verdict deliver() = 0;
};

}  // namespace weft::mpa
