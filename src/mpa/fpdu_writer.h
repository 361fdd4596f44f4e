// Frames ULPDUs as FPDUs into a batch: length, pad, CRC (RFC 5044 section 4) and, towards a peer
// that asked for them, markers (section 4.3, wire.md 3.4).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/io_vec.h"
#include "mpa/tx_batch.h"
#include "wire/fpdu.h"

namespace weft::mpa {

// One per stream and direction; remembers where the stream stands for the markers. Not thread-safe.
class FpduWriter {
 public:
  // Payloads under this size are copied beside their header: cheaper than one more piece for the
  // kernel (datapath.md R3).
  static constexpr size_t kCopyBelow = 4096;
  // Staging that an FPDU with a copied payload may need beyond its payload.
  static constexpr size_t kOverhead = 128;

  void configure(bool crc, bool markers) {
    crc_ = crc;
    markers_ = markers ? std::make_unique<Markers>() : nullptr;
  }

  // A batch, which is sent in one call, is filled so that TCP, with so many bytes in a segment,
  // cuts no FPDU; 0: it may (RFC 5044 section 5.1). Without markers.
  void keep_whole_in(uint32_t segment) { segment_ = segment; }

  // Whose memory a payload is in. That of a work request stays as it is until the request is
  // complete. What a Read Response is made of may change at any time, by the program or by other
  // messages (wire.md 4.9), also between the CRC and the socket: with CRC it is copied first, or
  // the change would look like damage on the way and end the stream.
  enum class Payload : uint8_t { held, may_change };

  // Does an FPDU with this header and payload fit into the batch?
  bool fits(const TxBatch& batch, size_t header, size_t payload, size_t pieces,
            Payload kind = Payload::held) const;

  // Appends one FPDU. `header` is copied, `payload` copied or referred to (see kCopyBelow). fits()
  // said yes.
  void write(TxBatch& batch, Bytes header, std::span<const IoVec> payload,
             Payload kind = Payload::held);
  // FPDUs so far, modulo 2^32.
  uint32_t fpdus() const { return fpdus_; }

 private:
  bool copies(size_t payload, Payload kind) const {
    return payload < kCopyBelow || (kind == Payload::may_change && crc_);
  }
  struct Markers {
    uint64_t position = 0;  // bytes of the stream since start-up
    std::vector<std::byte> scratch;
  };
  void write_with_markers(TxBatch& batch, Bytes header, std::span<const IoVec> payload);

  bool crc_ = true;
  uint32_t segment_ = 0;
  uint32_t fpdus_ = 0;
  std::unique_ptr<Markers> markers_;  // towards the rare peer that asks for them
};

}  // namespace weft::mpa
