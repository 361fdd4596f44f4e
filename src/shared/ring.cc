#include "shared/ring.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <new>
#include <utility>

#include "base/guarded.h"

namespace weft::shared {
namespace {

constexpr size_t kWord = sizeof(uint64_t);
constexpr size_t kReferenceSize = 2 * kWord;
// Bytes in one record: the ring has room for the next ones while the reader is at it.
constexpr size_t kMostInline = 32 * 1024;
// A writer that waits goes on when so much is free, and not for every record that is read. One that
// sleeps is woken up later: that costs both sides, and the reader has enough to do meanwhile.
constexpr size_t kRoomAgain = kRingBytes / 16;
constexpr size_t kRoomToWakeFor = kRingBytes / 2;

// The first word of a record (spec/same-host 3.2): its kind in the topmost byte, bytes below.
constexpr uint64_t kInline = 1;
constexpr uint64_t kReference = 2;
constexpr unsigned kKindShift = 56;

constexpr size_t round_up(size_t n) {
  return (n + kWord - 1) & ~(kWord - 1);
}

constexpr size_t index_of(uint64_t position) {
  return static_cast<size_t>(position % kRingBytes);
}

// As numbers, for `memory` may be all that there is.
bool within(const void* p, Bytes memory) {
  return reinterpret_cast<uintptr_t>(p) - reinterpret_cast<uintptr_t>(memory.data()) <
         memory.size();
}

}  // namespace

std::atomic<uint64_t>& RingPlace::word(uint64_t position) const {
  return *std::launder(reinterpret_cast<std::atomic<uint64_t>*>(bytes + index_of(position)));
}

// --- writer

// Looks how far the reader is. False: it claims what cannot be.
bool RingWriter::look() {
  const uint64_t read = place_.control->read.load(std::memory_order_seq_cst);
  if (read - read_ > published_ - read_) broken_ = true;
  if (broken_) return false;
  read_ = read;
  drop_pulled();
  return true;
}

void RingWriter::drop_pulled() {
  while (!references_.empty() && read_ - references_.front().word < kRingBytes) {
    if (read_ == references_.front().word) return;
    referred_ -= references_.front().length;
    references_.pop_front();
  }
}

bool RingWriter::refers_now() const {
  return !references_.empty() &&
         static_cast<int64_t>(place_.control->read.load(std::memory_order_acquire) -
                              references_.back().word) <= 0;
}

bool RingWriter::may_refer(const IoVec& piece, Bytes own) const {
  return piece.iov_len >= refer_from_ && !within(piece.iov_base, own) &&
         place_.control->reader_pulls.load(std::memory_order_relaxed) != 0;
}

port::ByteStream::Transfer RingWriter::write(std::span<const IoVec> pieces, Bytes own) {
  size_t taken = 0;
  bool faulted = false;
  if (!broken_ && room() < kRingBytes / 2) (void)look();
  while (!pieces.empty() && !broken_) {
    if (may_refer(pieces.front(), own)) {
      if (!refer(pieces.front().iov_base, pieces.front().iov_len)) break;
      taken += pieces.front().iov_len;
      pieces = pieces.subspan(1);
      continue;
    }
    // A run of pieces that are copied is one record, or several.
    size_t run = 0;
    while (run < pieces.size() && !may_refer(pieces[run], own)) ++run;
    const size_t copied = copy(pieces.first(run), faulted);
    taken += copied;
    if (copied < total(pieces.first(run))) break;
    pieces = pieces.subspan(run);
  }
  if (broken_) return {.error = EPROTO};
  if (taken == 0)
    return faulted ? port::ByteStream::Transfer{.error = EFAULT}
                   : port::ByteStream::Transfer{.would_block = true};
  return {.bytes = taken};
}

bool RingWriter::refer(const void* memory, size_t length) {
  if (room() < kReferenceSize || referred_ + length > kReferredMost) {
    if (!look() || room() < kReferenceSize || referred_ + length > kReferredMost) return false;
  }
  references_.push_back({.word = written_ + kWord, .memory = memory, .length = length, .copy = {}});
  place_.word(written_).store(kReference << kKindShift | length, std::memory_order_relaxed);
  place_.word(written_ + kWord)
      .store(reinterpret_cast<uintptr_t>(memory), std::memory_order_relaxed);
  referred_ += length;
  written_ += kReferenceSize;
  return true;
}

bool RingWriter::copy_in(uint64_t at, const std::byte* from, size_t n) const {
  const size_t first = std::min(n, kRingBytes - index_of(at));
  return hand_over_guarded(place_.bytes + index_of(at), from, first) &&
         (n == first || hand_over_guarded(place_.bytes, from + first, n - first));
}

// Returns the bytes that went into records; `faulted`: the next piece is gone.
size_t RingWriter::copy(std::span<const IoVec> pieces, bool& faulted) {
  size_t copied = 0;
  size_t offset = 0;  // in the first of `pieces`
  while (!pieces.empty() && !faulted) {
    if (room() <= kWord && (!look() || room() <= kWord)) break;
    const size_t most = std::min(kMostInline, room() - kWord);
    size_t length = 0;
    while (!pieces.empty() && length < most) {
      const size_t n = std::min(pieces.front().iov_len - offset, most - length);
      const auto* from = static_cast<const std::byte*>(pieces.front().iov_base) + offset;
      const uint64_t at = written_ + kWord + length;
      if (!copy_in(at, from, n)) {
        faulted = true;
        break;
      }
      length += n;
      offset += n;
      if (offset == pieces.front().iov_len) {
        pieces = pieces.subspan(1);
        offset = 0;
      }
    }
    if (length == 0) break;
    place_.word(written_).store(kInline << kKindShift | length, std::memory_order_relaxed);
    written_ += kWord + round_up(length);
    copied += length;
  }
  return copied;
}

void RingWriter::publish_part() {
  if (published_ == written_) return;
  published_ = written_;
  tells_ = true;
  place_.control->written.store(written_, std::memory_order_release);
}

bool RingWriter::publish() {
  if (published_ == written_ && !std::exchange(tells_, false)) return false;
  published_ = written_;
  // The reader says that it sleeps, and looks at `written` again: one of both sees the other.
  place_.control->written.store(written_, std::memory_order_seq_cst);
  return place_.control->reader_sleeps.load(std::memory_order_seq_cst) != 0 &&
         place_.control->reader_sleeps.exchange(0, std::memory_order_relaxed) != 0;
}

// Where the reader has to be before more is written.
uint64_t RingWriter::room_again_at(size_t room) const {
  uint64_t at = read_;
  if (written_ - read_ > kRingBytes - room) at = written_ - (kRingBytes - room);
  size_t left = referred_;
  for (const Reference& r : references_) {
    if (left <= kReferredMost / 2) break;
    left -= r.length;
    at = std::max(at, r.word + kWord);
  }
  return at;
}

bool RingWriter::has_room() {
  return !look() || room_again_at(kRoomAgain) == read_;
}

bool RingWriter::await_room() {
  if (has_room()) return false;
  place_.control->wake_writer_at.store(room_again_at(kRoomToWakeFor), std::memory_order_seq_cst);
  if (!has_room()) return true;
  place_.control->wake_writer_at.store(0, std::memory_order_relaxed);
  return false;
}

const void* RingWriter::detach() {
  if (!look()) return nullptr;
  const void* lost = nullptr;
  tells_ = !references_.empty();
  const auto replace = [&](Reference& r, std::unique_ptr<std::byte[]> copy) {
    if (copy == nullptr && lost == nullptr) lost = r.memory;
    r.copy = std::move(copy);
    r.memory = nullptr;
    // A reader that is pulling looks at the word once more when it has: it has either got the bytes
    // before this, or takes them from the copy.
    place_.word(r.word).store(reinterpret_cast<uintptr_t>(r.copy.get()), std::memory_order_seq_cst);
  };
  const auto is_to_go = [](const Reference& r) { return r.copy == nullptr && r.memory != nullptr; };
  // Before any place is allocated (readable_guarded()).
  for (Reference& r : references_) {
    if (is_to_go(r) && !readable_guarded(r.memory, r.length)) replace(r, {});
  }
  for (Reference& r : references_) {
    if (!is_to_go(r)) continue;
    auto copy = std::make_unique_for_overwrite<std::byte[]>(r.length);
    if (!copy_guarded(copy.get(), r.memory, r.length)) copy.reset();
    replace(r, std::move(copy));
  }
  place_.control->copies_wanted.store(0, std::memory_order_relaxed);
  return lost;
}

void RingWriter::end_for_loss() {
  if (room() < kReferenceSize && (!look() || room() < kReferenceSize)) return;
  place_.word(written_).store(kReference << kKindShift | 1, std::memory_order_relaxed);
  place_.word(written_ + kWord).store(0, std::memory_order_relaxed);
  written_ += kReferenceSize;
}

void RingWriter::revoke() {
  for (const Reference& r : references_) place_.word(r.word).store(0, std::memory_order_seq_cst);
}

// --- reader

// The rest of the places to be filled.
class RingReader::Places {
 public:
  explicit Places(std::span<const IoVec> pieces) : pieces_(pieces) { skip_empty(); }
  bool full() const { return pieces_.empty(); }
  size_t filled() const { return filled_; }
  MutableBytes first() const {
    const IoVec& v = pieces_.front();
    return {static_cast<std::byte*>(v.iov_base) + offset_, v.iov_len - offset_};
  }
  // Those for the next `n` bytes, or fewer.
  std::span<const IoVec> next(size_t n, std::array<IoVec, PieceList::kMost + 1>& room) const {
    size_t count = 0;
    size_t skip = offset_;
    for (const IoVec& v : pieces_) {
      if (n == 0 || count == room.size()) break;
      const size_t length = std::min(n, v.iov_len - skip);
      room[count++] = {static_cast<std::byte*>(v.iov_base) + skip, length};
      n -= length;
      skip = 0;
    }
    return {room.data(), count};
  }
  void fill(size_t n) {
    filled_ += n;
    while (n > 0) {
      const size_t step = std::min(n, pieces_.front().iov_len - offset_);
      offset_ += step;
      n -= step;
      skip_empty();
    }
  }

 private:
  void skip_empty() {
    while (!pieces_.empty() && offset_ == pieces_.front().iov_len) {
      pieces_ = pieces_.subspan(1);
      offset_ = 0;
    }
  }
  std::span<const IoVec> pieces_;
  size_t offset_ = 0;
  size_t filled_ = 0;
};

bool RingReader::has_input(std::memory_order order) const {
  if (broken_) return true;
  if (stalled_on_ != 0) return place_.word(read_ + kWord).load(order) != stalled_on_;
  return length_ > 0 || place_.control->written.load(order) != read_;
}

// Begins the next record where there is one. One by reference waits for a call of its own, unless
// nothing was read in this one (`fresh`).
RingReader::Step RingReader::next_record(bool fresh) {
  const uint64_t there = place_.control->written.load(std::memory_order_acquire) - read_;
  if (there == 0) return Step::nothing;
  if (there > kRingBytes || there < kWord) return Step::broken;
  const uint64_t head = place_.word(read_).load(std::memory_order_relaxed);
  const uint64_t kind = head >> kKindShift;
  const uint64_t length = head & ((uint64_t{1} << kKindShift) - 1);
  if (length == 0 || (kind != kInline && kind != kReference)) return Step::broken;
  if (kind == kInline && length > there - kWord) return Step::broken;
  if (kind == kReference && there < kReferenceSize) return Step::broken;
  if (kind == kReference && !fresh) return Step::nothing;
  by_reference_ = kind == kReference;
  length_ = static_cast<size_t>(length);
  done_ = 0;
  return Step::moved;
}

RingReader::Step RingReader::copy(Places& places) {
  const MutableBytes to = places.first();
  const uint64_t at = read_ + kWord + done_;
  const size_t n = std::min({length_ - done_, to.size(), kRingBytes - index_of(at)});
  if (!copy_guarded(to.data(), place_.bytes + index_of(at), n)) return Step::faulted;
  places.fill(n);
  done_ += n;
  return Step::moved;
}

RingReader::Step RingReader::pull(Places& places) {
  std::array<IoVec, PieceList::kMost + 1> room;
  const auto to = places.next(length_ - done_, room);
  std::atomic<uint64_t>& place = place_.word(read_ + kWord);
  const uint64_t address = place.load(std::memory_order_acquire);
  if (address == 0) return Step::taken_back;
  if (!peer_) return Step::broken;
  const PeerMemory::Pulled pulled = peer_->pull(to, address + done_);
  // The writer may have taken it back meanwhile, and what was pulled be what came into that memory
  // since. An exchange, for a load could be done before the pull's.
  uint64_t same = address;
  if (!place.compare_exchange_strong(same, same, std::memory_order_acq_rel)) return Step::nothing;
  if (pulled.error != 0) return cannot_pull(pulled.error, address);
  places.fill(pulled.bytes);
  done_ += pulled.bytes;
  return Step::moved;
}

// Whose memory is it that cannot be reached?
RingReader::Step RingReader::cannot_pull(int error, uint64_t address) {
  if (error != EFAULT) return Step::lost;
  std::byte probe;
  const IoVec one{&probe, 1};
  if (peer_->pull({&one, 1}, address + done_).error != EFAULT) return Step::faulted;
  stalled_on_ = address;
  place_.control->copies_wanted.store(1, std::memory_order_release);
  asks_writer_ = true;
  return Step::nothing;
}

port::ByteStream::Transfer RingReader::read(std::span<const IoVec> pieces) {
  Places places{pieces};
  Step step = broken_ ? Step::broken : Step::moved;
  if (stalled_on_ != 0 && has_input()) stalled_on_ = 0;
  if (stalled_on_ != 0) return {.would_block = true};
  while (step == Step::moved && !places.full()) {
    if (length_ == 0) step = next_record(places.filled() == 0);
    if (step != Step::moved) break;
    step = by_reference_ ? pull(places) : copy(places);
    if (step == Step::moved && done_ == length_) {
      read_ += by_reference_ ? kReferenceSize : kWord + round_up(length_);
      length_ = 0;
    }
  }
  if (places.filled() > 0) return {.bytes = places.filled()};
  switch (step) {
    case Step::faulted:
      return {.error = EFAULT};
    case Step::broken:
      broken_ = true;
      return {.error = EPROTO};
    case Step::lost:
      broken_ = true;
      return {.error = ECONNRESET};
    case Step::taken_back:
      broken_ = true;
      return {.error = port::SharedBytes::kSourceLost};
    case Step::moved:
    case Step::nothing:
      break;
  }
  return {.would_block = true};
}

bool RingReader::publish() {
  if (published_ != read_) {
    published_ = read_;
    // The writer says where it waits, and looks at `read` again: one of both sees the other.
    place_.control->read.store(read_, std::memory_order_seq_cst);
    const uint64_t at = place_.control->wake_writer_at.load(std::memory_order_seq_cst);
    if (at != 0 && static_cast<int64_t>(read_ - at) >= 0) {
      asks_writer_ |= place_.control->wake_writer_at.exchange(0, std::memory_order_relaxed) != 0;
    }
  }
  return std::exchange(asks_writer_, false);
}

bool RingReader::sleep() {
  place_.control->reader_sleeps.exchange(1, std::memory_order_seq_cst);
  if (!has_input(std::memory_order_seq_cst)) return true;
  stay_awake();
  return false;
}

}  // namespace weft::shared
