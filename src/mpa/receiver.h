// Takes the byte stream apart into FPDUs (RFC 5044 section 4; wire.md 3.3), any way it was cut.
//
//            +-- FPDU lies whole in the bounce buffer: CRC, begin, copy, deliver
//   bytes ---+-- large FPDU, header there: begin, copy what came, the rest is received straight to
//   its place, CRC, deliver
//            +-- rest of a small FPDU: kept until more comes
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/crc32c.h"
#include "mpa/ulpdu_sink.h"
#include "wire/fpdu.h"

namespace weft::mpa {

// One per stream. Not thread-safe; calls the sink while it is called itself.
class Receiver {
 public:
  // From this size on the rest of an FPDU is received straight to its place. Below it, a copy from
  // a warm buffer is cheaper than one more system call (datapath.md 3).
  static constexpr size_t kDirectFrom = 16 * 1024;

  explicit Receiver(UlpduSink& sink) : sink_(sink) {}

  // `crc_first`: no byte is placed before the CRC of its FPDU is known (option crc_first).
  // `empty_ulpdu`: an FPDU without a DDP segment is legal as the first one (RTR of kind B).
  void configure(bool crc, bool crc_first, bool empty_ulpdu) {
    crc_ = crc;
    direct_from_ = crc_first ? SIZE_MAX : kDirectFrom;
    empty_ulpdu_ = empty_ulpdu;
  }

  // Bytes that landed in a bounce buffer. On error the stream is over.
  Verdict received(Bytes bytes);

  // Is the rest of an FPDU wanted straight in its place?
  bool direct() const { return state_ == State::direct; }
  // Only when direct(): appends where the next bytes go, the trailer included.
  Verdict direct_places(PieceList& places);
  // The first `n` bytes of what direct_places() named were filled.
  Verdict direct_received(size_t n);

  // Between two FPDUs: here a FIN is a clean end.
  bool at_boundary() const { return state_ == State::gather && kept_.empty(); }
  // FPDUs that were in order from the first byte to the last, and delivered.
  uint64_t fpdus() const { return fpdus_; }
  // Gives back the memory of the rest of an FPDU, where none is kept. For streams that fall idle.
  void trim() {
    if (kept_.empty()) kept_.shrink_to_fit();
  }

 private:
  enum class State : uint8_t { gather, direct };

  Verdict whole(Bytes fpdu);
  Verdict start_direct(Bytes part, size_t ulpdu);
  Verdict place(size_t offset, Bytes payload);
  Verdict deliver();
  Verdict gather_kept(Bytes& bytes);

  UlpduSink& sink_;
  bool crc_ = true;
  bool empty_ulpdu_ = false;
  size_t direct_from_ = kDirectFrom;
  State state_ = State::gather;
  uint64_t fpdus_ = 0;
  std::vector<std::byte> kept_;

  // Only in State::direct.
  Crc32c sum_;
  uint32_t payload_size_ = 0;
  uint32_t payload_have_ = 0;
  uint32_t trailer_size_ = 0;
  uint32_t trailer_have_ = 0;
  std::array<std::byte, 8> trailer_{};
};

}  // namespace weft::mpa
