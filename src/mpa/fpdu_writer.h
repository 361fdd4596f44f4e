// Frames ULPDUs as FPDUs into a batch: length, pad, CRC (RFC 5044 section 4) and, towards a peer
// that asked for them, markers (section 4.3, spec/mpa 3.4).
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "base/guarded.h"
#include "base/io_vec.h"
#include "mpa/tx_batch.h"
#include "wire/fpdu.h"

namespace weft::mpa {

// One per stream and direction; remembers where the stream stands for the markers. Not thread-safe.
class FpduWriter {
 public:
  // Payloads under this size are copied beside their header: cheaper than one more piece for the
  // kernel (design/16). With CRC all are: memory that a program has posted, or a peer reads,
  // may change at any time (spec/rdmap 3.5), and what was summed has to be what leaves
  // (docs/design/06).
  static constexpr size_t kCopyBelow = 4096;
  // Staging that an FPDU with a copied payload may need beyond its payload.
  static constexpr size_t kOverhead = 128;
  // See part(). What follows lies as much further from its source as framing takes: 36 bytes.
  static constexpr uint32_t kSlowPart = 64;

  void configure(bool crc, bool markers) {
    crc_ = crc;
    markers_ = markers ? std::make_unique<Markers>() : nullptr;
  }

  // The bytes go to memory that both ends share: without CRC, whatever configure() said. Before the
  // first FPDU.
  void go_by_memory() {
    crc_ = false;
    form_ = wire::FpduForm::of_memory();
  }

  // A batch, which is sent in one call, is filled so that TCP, with so many bytes in a segment,
  // cuts no FPDU; 0: it may (RFC 5044 section 5.1). Without markers.
  void keep_whole_in(uint32_t segment) { segment_ = segment; }

  // How much of a payload, `n` bytes at `from`, shall the next FPDU take? All; but where it is the
  // first of a batch the kernel is likely to copy it to the beginning of a page, behind the header,
  // and if that is a slow copy (base/slow_copy.h) so little that the rest lies far enough away.
  uint32_t part(const TxBatch& batch, size_t header, const void* from, uint32_t n) const {
    return n < kCopyBelow + kSlowPart || crc_ || !batch.empty() ? n
                                                                : part_of_first(header, from, n);
  }

  // Does an FPDU with this header and payload fit into the batch?
  bool fits(const TxBatch& batch, size_t header, size_t payload, size_t pieces) const;

  // Appends one FPDU. `header` is copied, `payload` copied or referred to (see kCopyBelow). fits()
  // said yes. False, with nothing appended, where memory of the payload is gone (base/guarded.h).
  [[nodiscard]] bool write(TxBatch& batch, Bytes header, std::span<const IoVec> payload);
  // Most messages that are short, within one host or without CRC: one piece of payload, which is
  // copied, and no sum. The header is made where it leaves from.
  bool writes_short(size_t payload) const {
    return !crc_ && markers_ == nullptr && payload < kCopyBelow;
  }
  enum class Short : uint8_t { written, no_room, gone };
  // Appends one FPDU for which writes_short() said yes. `Header`: of wire/ddp_header.h. gone: as
  // false of write().
  template <class Header>
  [[nodiscard]] Short write_short(TxBatch& batch, const Header& header, const void* payload,
                                  size_t n) {
    const size_t ulpdu = Header::kSize + n;
    const size_t size = form_.size(ulpdu);
    if (!fits_copied(batch, size)) return Short::no_room;
    std::byte* p = batch.stage(size);
    p = form_.put_length(p, ulpdu);
    header.encode(p);
    p += Header::kSize;
    if (!copy_guarded(p, payload, n)) {
      batch.unstage(size);
      return Short::gone;
    }
    if (const size_t trailer = form_.trailer(ulpdu)) std::memset(p + n, 0, trailer);
    ++fpdus_;
    return Short::written;
  }
  // One whose payload is none.
  void write(TxBatch& batch, Bytes header) { (void)write(batch, header, {}); }
  // FPDUs so far, modulo 2^32.
  uint32_t fpdus() const { return fpdus_; }

 private:
  bool copies(size_t payload) const { return crc_ || payload < kCopyBelow; }
  // Where FPDUs have filled whole segments the next one begins a segment.
  bool crosses_segment(const TxBatch& batch, size_t frame) const {
    return segment_ != 0 && !batch.empty() && batch.bytes() % segment_ + frame > segment_;
  }
  // Without markers, all of it in staging.
  bool fits_copied(const TxBatch& batch, size_t frame) const {
    return !crosses_segment(batch, frame) && batch.has_room(frame, 0, frame);
  }
  uint32_t part_of_first(size_t header, const void* from, uint32_t n) const;
  struct Markers {
    uint64_t position = 0;  // bytes of the stream since start-up
    std::vector<std::byte> scratch;
  };
  bool write_copy(TxBatch& batch, Bytes header, std::span<const IoVec> payload, size_t ulpdu);
  bool write_with_markers(TxBatch& batch, Bytes header, std::span<const IoVec> payload,
                          size_t ulpdu);

  wire::FpduForm form_ = wire::FpduForm::of_tcp();
  bool crc_ = true;
  uint32_t segment_ = 0;
  uint32_t fpdus_ = 0;
  std::unique_ptr<Markers> markers_;  // towards the rare peer that asks for them
};

}  // namespace weft::mpa
