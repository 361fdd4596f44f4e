#include "mpa/receiver.h"

#include <algorithm>

#include "base/crc32c.h"
#include "base/guarded.h"

namespace weft::mpa {

using wire::kFpduCrcSize;

Verdict Receiver::received(Bytes bytes) {
  while (!bytes.empty()) {
    if (state_ == State::direct) {
      if (Verdict v = place_part(bytes); !v.ok()) return v;
      continue;
    }
    if (!kept_.empty()) {
      if (Verdict v = gather_kept(bytes); !v.ok()) return v;
      continue;
    }
    if (bytes.size() >= length_size()) {
      const size_t ulpdu = form_.ulpdu(bytes.data());
      if (ulpdu > form_.most()) return too_long();
      const size_t size = form_.size(ulpdu);
      if (bytes.size() >= size) {
        if (Verdict v = whole(bytes.first(size)); !v.ok()) return v;
        bytes = bytes.subspan(size);
        continue;
      }
      if (goes_to_its_place(size) && bytes.size() > length_size() &&
          bytes.size() >= length_size() + sink_.header_size(bytes[length_size()])) {
        return start_direct(bytes, ulpdu);
      }
    }
    keep(bytes);
    return Ok{};
  }
  return Ok{};
}

// Adds to the kept part of an FPDU.
void Receiver::keep(Bytes bytes) {
  kept_.append(bytes);
  if (kept_.size() < length_size()) return;
  const size_t size = form_.size(form_.ulpdu(kept_.bytes().data()));
  if (!crc_ || size < direct_from_) return;
  kept_.reserve(size);
  kept_size_ = size;
}

// Adds to it no more than it lacks, and handles it when it is complete.
Verdict Receiver::gather_kept(Bytes& bytes) {
  auto take_up_to = [&](size_t size) {
    const size_t n = std::min(size - std::min(size, kept_.size()), bytes.size());
    if (n > 0) keep(bytes.first(n));
    bytes = bytes.subspan(n);
    return kept_.size() >= size;
  };
  if (!take_up_to(length_size())) return Ok{};
  const size_t ulpdu = form_.ulpdu(kept_.bytes().data());
  if (ulpdu > form_.most()) return too_long();
  const size_t size = form_.size(ulpdu);
  if (goes_to_its_place(size)) {
    if (!take_up_to(length_size() + 1)) return Ok{};
    const size_t head = length_size() + sink_.header_size(kept_.bytes()[length_size()]);
    if (!take_up_to(head)) return Ok{};
    const Verdict v = start_direct(kept_.bytes(), ulpdu);
    kept_.clear();
    return v;
  }
  return take_up_to(size) ? whole_kept() : Verdict{Ok{}};
}

Verdict Receiver::too_long() {
  return fail(wire::term::kMpaLength.because(wire::Refusal::ulpdu_too_long));
}

Verdict Receiver::whole_kept() {
  kept_size_ = 0;
  const Verdict v = whole(kept_.bytes());
  kept_.clear();
  return v;
}

Verdict Receiver::whole(Bytes fpdu) {
  const size_t ulpdu = form_.ulpdu(fpdu.data());
  // RFC 5044 section 6: an FPDU with a wrong CRC does not even go to DDP, so nothing is placed.
  if (crc_) {
    const Bytes covered = fpdu.first(fpdu.size() - kFpduCrcSize);
    if (crc32c(covered) != load_le32(fpdu.data() + covered.size())) {
      return fail(wire::term::kMpaCrc.because(wire::Refusal::crc));
    }
  }
  if (ulpdu == 0) {
    if (!empty_ulpdu_ || fpdus_ != 0) {
      return fail(wire::term::kMpaLength.because(wire::Refusal::empty_ulpdu));
    }
    ++fpdus_;
    return Ok{};
  }
  const Bytes body = fpdu.subspan(length_size(), ulpdu);
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
    if (!copy_guarded(piece.iov_base, payload.data(), piece.iov_len)) {
      return fail(sink_.unreachable());
    }
    payload = payload.subspan(piece.iov_len);
  }
  return Ok{};
}

// --- without CRC

Verdict Receiver::start_direct(Bytes part, size_t ulpdu) {
  const size_t header = sink_.header_size(part[length_size()]);
  if (Verdict v = sink_.begin(part.subspan(length_size(), header), ulpdu); !v.ok()) return v;
  state_ = State::direct;
  payload_size_ = static_cast<uint32_t>(ulpdu - header);
  payload_have_ = trailer_have_ = 0;
  trailer_size_ = static_cast<uint32_t>(form_.trailer(ulpdu));
  return received(part.subspan(length_size() + header));
}

// What came into the bounce buffer though it is wanted in its place.
Verdict Receiver::place_part(Bytes& bytes) {
  const size_t payload = std::min<size_t>(bytes.size(), payload_size_ - payload_have_);
  if (Verdict v = place(payload_have_, bytes.first(payload)); !v.ok()) return v;
  const size_t trailer = std::min<size_t>(bytes.size() - payload, trailer_size_ - trailer_have_);
  bytes = bytes.subspan(payload + trailer);
  return direct_received(payload + trailer);
}

Verdict Receiver::direct_places(PieceList& places) {
  if (state_ != State::direct) {
    const MutableBytes rest = kept_.rest(kept_size_);
    (void)places.add(rest.data(), rest.size());
    return Ok{};
  }
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
  if (state_ != State::direct) {
    kept_.filled(n);
    return kept_.size() == kept_size_ ? whole_kept() : Verdict{Ok{}};
  }
  const size_t payload = std::min<size_t>(n, payload_size_ - payload_have_);
  payload_have_ += static_cast<uint32_t>(payload);
  trailer_have_ += static_cast<uint32_t>(n - payload);
  if (payload_have_ < payload_size_ || trailer_have_ < trailer_size_) return Ok{};
  // RFC 5044 section 4.4: without CRC its field is there, and not looked at.
  state_ = State::gather;
  return deliver();
}

}  // namespace weft::mpa
