// Takes the byte stream apart into FPDUs (RFC 5044 section 4; spec/mpa 3.3), any way it was cut.
//
//            +-- FPDU lies whole in the bounce buffer: CRC, begin, copy, deliver
//   bytes ---+-- first part of an FPDU: kept. The rest of a large one is received straight behind
//            |   it; then as above
//            +-- without CRC, a large FPDU, header there: begin, copy what came, the rest is
//            received
//                straight to its place, deliver
//
// A CRC is taken of bytes that nobody else can write to: not in their place, where the program or
// another peer may write at the same moment, which would look like damage on the way. RFC 5044
// section 6: nothing is placed before its CRC was right.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "mpa/partial_fpdu.h"
#include "mpa/ulpdu_sink.h"
#include "wire/fpdu.h"

namespace weft::mpa {

// One per stream. Not thread-safe; calls the sink while it is called itself.
class Receiver {
 public:
  // From this size on the rest of an FPDU is received straight to where it is wanted. Below it, a
  // copy from a warm buffer is cheaper than one more system call (design/16).
  static constexpr size_t kDirectFrom = 24 * 1024;
  // From memory there is no such call.
  static constexpr size_t kDirectFromInMemory = 4 * 1024;

  explicit Receiver(UlpduSink& sink) : sink_(sink) {}

  // `empty_ulpdu`: an FPDU without a DDP segment is legal as the first one (RTR of kind B).
  void configure(bool crc, bool empty_ulpdu) {
    crc_ = crc;
    empty_ulpdu_ = empty_ulpdu;
  }

  // The bytes come from memory that both ends share, without CRC, whatever configure() said. Before
  // the first FPDU.
  void go_by_memory() {
    crc_ = false;
    direct_from_ = kDirectFromInMemory;
    form_ = wire::FpduForm::of_memory();
  }

  // Bytes of an FPDU from which on its rest is wanted in its place.
  size_t direct_from() const { return direct_from_; }

  // Bytes that landed in a bounce buffer. On error the stream is over.
  Verdict received(Bytes bytes);

  // Is the rest of an FPDU wanted in places that direct_places() names?
  bool direct() const { return state_ == State::direct || kept_size_ != 0; }
  // Are these places in memory of the program's?
  bool in_place() const { return state_ == State::direct; }
  // Only when direct(): appends where the next bytes go, the trailer included.
  Verdict direct_places(PieceList& places);
  // The first `n` bytes of what direct_places() named were filled.
  Verdict direct_received(size_t n);

  // What is there of a ULPDU of which DDP was not told yet: its beginning, or nothing.
  Bytes begun() const { return kept_.bytes().subspan(std::min(kept_.size(), form_.length_size())); }
  // Between two FPDUs: here a FIN is a clean end.
  bool at_boundary() const { return state_ == State::gather && kept_.empty(); }
  // FPDUs that were in order from the first byte to the last, and delivered.
  uint64_t fpdus() const { return fpdus_; }
  // Gives back the memory of the rest of an FPDU, where none is kept. For streams that fall idle.
  void trim() { kept_.trim(); }

 private:
  enum class State : uint8_t { gather, direct };

  size_t length_size() const { return form_.length_size(); }
  static Verdict too_long();
  bool goes_to_its_place(size_t size) const { return !crc_ && size >= direct_from_; }
  Verdict whole(Bytes fpdu);
  Verdict whole_kept();
  Verdict start_direct(Bytes part, size_t ulpdu);
  Verdict place(size_t offset, Bytes payload);
  Verdict place_part(Bytes& bytes);
  Verdict deliver();
  Verdict gather_kept(Bytes& bytes);
  void keep(Bytes bytes);

  UlpduSink& sink_;
  size_t direct_from_ = kDirectFrom;
  wire::FpduForm form_ = wire::FpduForm::of_tcp();
  bool crc_ = true;
  bool empty_ulpdu_ = false;
  State state_ = State::gather;
  uint64_t fpdus_ = 0;
  PartialFpdu kept_;
  size_t kept_size_ = 0;  // that it will have, where it is large and wanted whole; else 0

  // Only in State::direct.
  uint32_t payload_size_ = 0;
  uint32_t payload_have_ = 0;
  uint32_t trailer_size_ = 0;
  uint32_t trailer_have_ = 0;
  std::array<std::byte, 8> trailer_{};
};

}  // namespace weft::mpa
