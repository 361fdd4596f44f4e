#include "mpa/receiver.h"

#include <algorithm>

namespace weft::mpa {

using wire::kFpduCrcSize;
using wire::kFpduLengthSize;

Verdict Receiver::received(Bytes bytes) {
  while (!bytes.empty()) {
    if (state_ == State::direct) {
      PieceList places;
      if (Verdict v = direct_places(places); !v.ok()) return v;
      size_t n = 0;
      for (const IoVec& piece : places.pieces()) {
        const size_t now = std::min(piece.iov_len, bytes.size() - n);
        std::memcpy(piece.iov_base, bytes.data() + n, now);
        n += now;
      }
      if (Verdict v = direct_received(n); !v.ok()) return v;
      bytes = bytes.subspan(n);
      continue;
    }
    if (!kept_.empty()) {
      if (Verdict v = gather_kept(bytes); !v.ok()) return v;
      continue;
    }
    if (bytes.size() >= kFpduLengthSize) {
      const size_t ulpdu = load_be<uint16_t>(bytes.data());
      const size_t size = wire::fpdu_size(ulpdu);
      if (bytes.size() >= size) {
        if (Verdict v = whole(bytes.first(size)); !v.ok()) return v;
        bytes = bytes.subspan(size);
        continue;
      }
      if (size >= direct_from_ && bytes.size() > kFpduLengthSize &&
          bytes.size() >= kFpduLengthSize + sink_.header_size(bytes[kFpduLengthSize])) {
        return start_direct(bytes, ulpdu);
      }
    }
    kept_.assign(bytes.begin(), bytes.end());
    return Ok{};
  }
  return Ok{};
}

// Adds to the kept part of an FPDU no more than it lacks, and handles it when it is complete.
Verdict Receiver::gather_kept(Bytes& bytes) {
  auto take = [&](size_t n) {
    n = std::min(n, bytes.size());
    kept_.insert(kept_.end(), bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(n));
    bytes = bytes.subspan(n);
  };
  if (kept_.size() < kFpduLengthSize) {
    take(kFpduLengthSize - kept_.size());
    if (kept_.size() < kFpduLengthSize) return Ok{};
  }
  const size_t ulpdu = load_be<uint16_t>(kept_.data());
  const size_t size = wire::fpdu_size(ulpdu);
  if (size >= direct_from_) {
    if (kept_.size() == kFpduLengthSize) take(1);
    if (kept_.size() == kFpduLengthSize) return Ok{};
    const size_t head = kFpduLengthSize + sink_.header_size(kept_[kFpduLengthSize]);
    if (kept_.size() < head) take(head - kept_.size());
    if (kept_.size() < head) return Ok{};
    const Verdict v = start_direct(kept_, ulpdu);
    kept_.clear();
    return v;
  }
  take(size - kept_.size());
  if (kept_.size() < size) return Ok{};
  const Verdict v = whole(kept_);
  kept_.clear();
  return v;
}

Verdict Receiver::whole(Bytes fpdu) {
  const size_t ulpdu = load_be<uint16_t>(fpdu.data());
  const Bytes covered = fpdu.first(fpdu.size() - kFpduCrcSize);
  // RFC 5044 section 4.4: nothing of an FPDU with a wrong CRC is delivered; here it is not even
  // placed.
  if (crc_ && crc32c(covered) != load_le32(fpdu.data() + covered.size())) {
    return fail(wire::term::kMpaCrc.because(wire::Refusal::crc));
  }
  if (ulpdu == 0) {
    if (!empty_ulpdu_ || fpdus_ != 0) {
      return fail(wire::term::kMpaLength.because(wire::Refusal::empty_ulpdu));
    }
    ++fpdus_;
    return Ok{};
  }
  const Bytes body = fpdu.subspan(kFpduLengthSize, ulpdu);
  const size_t header = std::min(sink_.header_size(body[0]), body.size());
  if (Verdict v = sink_.begin(body.first(header), ulpdu); !v.ok()) return v;
  if (Verdict v = place(0, body.subspan(header)); !v.ok()) return v;
  return deliver();
}

Verdict Receiver::deliver() {
  Verdict v = sink_.deliver();
  if (v.ok()) ++fpdus_;
  return v;
}

Verdict Receiver::place(size_t offset, Bytes payload) {
  if (payload.empty()) return Ok{};
  PieceList places;
  if (Verdict v = sink_.where(offset, payload.size(), places); !v.ok()) return v;
  for (const IoVec& piece : places.pieces()) {
    std::memcpy(piece.iov_base, payload.data(), piece.iov_len);
    payload = payload.subspan(piece.iov_len);
  }
  return Ok{};
}

Verdict Receiver::start_direct(Bytes part, size_t ulpdu) {
  const size_t header = sink_.header_size(part[kFpduLengthSize]);
  if (Verdict v = sink_.begin(part.subspan(kFpduLengthSize, header), ulpdu); !v.ok()) return v;
  state_ = State::direct;
  payload_size_ = static_cast<uint32_t>(ulpdu - header);
  payload_have_ = trailer_have_ = 0;
  trailer_size_ = static_cast<uint32_t>(wire::fpdu_pad(ulpdu) + kFpduCrcSize);
  sum_ = Crc32c{};
  if (crc_) sum_.update(part.first(kFpduLengthSize + header));
  return received(part.subspan(kFpduLengthSize + header));
}

Verdict Receiver::direct_places(PieceList& places) {
  if (payload_have_ < payload_size_) {
    if (Verdict v = sink_.where(payload_have_, payload_size_ - payload_have_, places); !v.ok()) {
      return v;
    }
  }
  // A list that is full leaves the trailer for the next call.
  (void)places.add(trailer_.data() + trailer_have_, trailer_size_ - trailer_have_);
  return Ok{};
}

Verdict Receiver::direct_received(size_t n) {
  if (payload_have_ < payload_size_ && n > 0) {
    const size_t payload = std::min<size_t>(n, payload_size_ - payload_have_);
    if (crc_) {
      PieceList places;
      if (Verdict v = sink_.where(payload_have_, payload, places); !v.ok()) return v;
      for (const IoVec& piece : places.pieces()) {
        sum_.update(Bytes{static_cast<const std::byte*>(piece.iov_base), piece.iov_len});
      }
    }
    payload_have_ += static_cast<uint32_t>(payload);
    n -= payload;
  }
  trailer_have_ += static_cast<uint32_t>(n);
  if (payload_have_ < payload_size_ || trailer_have_ < trailer_size_) return Ok{};
  const size_t pad = trailer_size_ - kFpduCrcSize;
  if (crc_) sum_.update(Bytes{trailer_}.first(pad));
  state_ = State::gather;
  if (crc_ && load_le32(trailer_.data() + pad) != sum_.value()) {
    return fail(wire::term::kMpaCrc.because(wire::Refusal::crc));
  }
  return deliver();
}

}  // namespace weft::mpa
