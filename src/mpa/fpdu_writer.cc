#include "mpa/fpdu_writer.h"

#include "base/crc32c.h"
#include "base/slow_copy.h"

namespace weft::mpa {

using wire::FpduForm;

namespace {

// Above this size an FPDU is summed block by block as it is copied; a smaller one is still in the
// first-level cache when all of it is there.
constexpr size_t kSumsWhileCopying = 4096;

// Copies and returns the end. memcpy(3) wants no null pointer, not even for no bytes, and an empty
// piece may have one.
std::byte* put(std::byte* to, const void* from, size_t n) {
  if (n > 0) std::memcpy(to, from, n);
  return to + n;
}

// ULPDU_Length and header, in stores of eight bytes from the beginning on, as the CRC loads them
// (see TaggedHeader::encode()). Returns the end.
std::byte* put_start(FpduForm form, std::byte* to, size_t ulpdu, Bytes header) {
  constexpr size_t kWord = sizeof(uint64_t);
  constexpr size_t kOfFirst = kWord - wire::kFpduLengthSize;  // of the header, in the first word
  if (form.length_size() == sizeof(uint32_t)) {
    to = form.put_length(to, ulpdu);
    if (header.size() < kWord || header.size() > 2 * kWord) {
      return put(to, header.data(), header.size());
    }
    // Two words that overlap.
    std::byte* const end = to + header.size();
    uint64_t last;
    std::memcpy(&last, header.data() + header.size() - kWord, kWord);
    std::memcpy(to, header.data(), kWord);
    std::memcpy(end - kWord, &last, kWord);
    return end;
  }
  if (header.size() < kOfFirst + kWord) {
    return put(form.put_length(to, ulpdu), header.data(), header.size());
  }
  store_be(to, uint64_t{ulpdu} << 48 | load_be<uint64_t>(header.data()) >> 16);
  std::memcpy(to + kWord, header.data() + kOfFirst, kWord);
  const Bytes rest = header.subspan(kOfFirst + kWord);
  return put(to + 2 * kWord, rest.data(), rest.size());
}

// Markers that fall into `n` bytes of FPDU beginning at stream position `at`, each pushing the rest
// back by its size.
size_t markers_within(uint64_t at, size_t n) {
  size_t count = 0;
  for (uint64_t end = at + n; at < end;) {
    if (at % wire::kMarkerSpacing == 0) {
      ++count;
      end += wire::kMarkerSize;
      at += wire::kMarkerSize;
    }
    at += wire::kMarkerSpacing - at % wire::kMarkerSpacing;
  }
  return count;
}

}  // namespace

bool FpduWriter::fits(const TxBatch& batch, size_t header, size_t payload, size_t pieces) const {
  const size_t frame = form_.size(header + payload);
  if (markers_ != nullptr) {
    const size_t marked =
        frame + (frame / (wire::kMarkerSpacing - wire::kMarkerSize) + 2) * wire::kMarkerSize;
    return batch.has_room(marked, 0, marked);
  }
  if (copies(payload)) return fits_copied(batch, frame);
  return !crosses_segment(batch, frame) && batch.has_room(header + kOverhead, pieces, frame);
}

bool FpduWriter::write(TxBatch& batch, Bytes header, std::span<const IoVec> payload) {
  const size_t payload_size = total(payload);
  const size_t ulpdu = header.size() + payload_size;
  bool written = true;
  if (markers_ != nullptr) {
    written = write_with_markers(batch, header, payload, ulpdu);
  } else if (copies(payload_size)) {
    written = write_copy(batch, header, payload, ulpdu);
  } else {
    put_start(form_, batch.stage(form_.length_size() + header.size()), ulpdu, header);
    for (const IoVec& v : payload) batch.refer(v.iov_base, v.iov_len);
    if (const size_t trailer = form_.trailer(ulpdu)) std::memset(batch.stage(trailer), 0, trailer);
  }
  if (written) ++fpdus_;
  return written;
}

uint32_t FpduWriter::part_of_first(size_t header, const void* from, uint32_t n) const {
  const bool by_kernel = form_.length_size() == wire::kFpduLengthSize;  // and not into a ring
  const bool slow = by_kernel && copies_slowly_close_by() &&
                    lies_close_behind(from, form_.length_size() + header);
  return slow ? kSlowPart : n;
}

bool FpduWriter::write_copy(TxBatch& batch, Bytes header, std::span<const IoVec> payload,
                            size_t ulpdu) {
  const size_t size = form_.size(ulpdu);
  const size_t trailer = form_.trailer(ulpdu);
  std::byte* const begin = batch.stage(size);
  std::byte* p = put_start(form_, begin, ulpdu, header);
  Crc32c sum;
  const bool sums = crc_ && ulpdu >= kSumsWhileCopying;
  if (sums) sum.update(Bytes{begin, p});
  for (const IoVec& v : payload) {
    const Bytes from{static_cast<const std::byte*>(v.iov_base), v.iov_len};
    if (!(sums ? copy_with_crc(p, from, sum) : copy_guarded(p, from.data(), from.size()))) {
      batch.unstage(size);
      return false;
    }
    p += v.iov_len;
  }
  if (trailer == 0) return true;
  std::memset(p, 0, trailer);
  if (!crc_) return true;
  const size_t pad = trailer - wire::kFpduCrcSize;
  sum.update(sums ? Bytes{p, pad} : Bytes{begin, p + pad});
  store_le32(p + pad, sum.value());
  return true;
}

bool FpduWriter::write_with_markers(TxBatch& batch, Bytes header, std::span<const IoVec> payload,
                                    size_t ulpdu) {
  uint64_t& position = markers_->position;
  std::vector<std::byte>& scratch = markers_->scratch;
  const size_t pad = wire::fpdu_pad(ulpdu);
  scratch.resize(wire::fpdu_size(ulpdu));
  std::byte* p = scratch.data();
  store_be(p, static_cast<uint16_t>(ulpdu));
  p = put(p + wire::kFpduLengthSize, header.data(), header.size());
  for (const IoVec& v : payload) {
    if (!copy_guarded(p, v.iov_base, v.iov_len)) return false;
    p += v.iov_len;
  }
  std::memset(p, 0, pad + wire::kFpduCrcSize);

  // RFC 5044 section 4.3: a marker points back to the ULPDU_Length field of its FPDU; one that
  // stands right before that field says 0. Markers count into the CRC of the FPDU that they precede
  // or lie in.
  const size_t marked =
      scratch.size() + markers_within(position, scratch.size()) * wire::kMarkerSize;
  std::byte* const out = batch.stage(marked);
  const size_t marked_crc = marked - wire::kFpduCrcSize;
  size_t to = 0;
  size_t from = 0;
  size_t length_field = 0;  // where the ULPDU_Length field stands in `out`
  while (from < scratch.size()) {
    if ((position + to) % wire::kMarkerSpacing == 0) {
      const uint16_t fpduptr = from == 0 ? 0 : static_cast<uint16_t>(to - length_field);
      store_be<uint16_t>(out + to, 0);
      store_be<uint16_t>(out + to + 2, fpduptr);
      to += wire::kMarkerSize;
      if (from == 0) length_field = to;
    }
    const size_t until_marker =
        wire::kMarkerSpacing - static_cast<size_t>((position + to) % wire::kMarkerSpacing);
    const size_t n = std::min(until_marker, scratch.size() - from);
    std::memcpy(out + to, scratch.data() + from, n);
    to += n;
    from += n;
  }
  position += marked;
  // All sizes on the stream are multiples of four, so a marker never splits the CRC field.
  if (crc_) store_le32(out + marked_crc, crc32c(Bytes{out, marked_crc}));
  return true;
}

}  // namespace weft::mpa
