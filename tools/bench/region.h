// Memory that messages go out of and into, and what it should hold: data that varies byte by byte,
// so that a byte in the wrong place is seen.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace weft::bench {

// Messages take its slots by turns: message n lies in slot n modulo their number. Pages come into
// being at the first touch.
class Region {
 public:
  // `message` bytes a slot, more than 0; `slots` of them, or when that is 0 4 MB in all, or one
  // message when that is larger.
  explicit Region(uint64_t message, uint64_t slots = 0);
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;
  ~Region();

  std::byte* data() const { return data_; }
  uint64_t size() const { return slots_ * slot_; }
  uint64_t slots() const { return slots_; }
  uint64_t slot_size() const { return slot_; }

  // The same bytes in every region of this size.
  void fill();
  // Zeroes.
  void clear();
  // Whether the slots of messages `first` to `first + count - 1` hold what fill() would write
  // there, and all others zeroes.
  bool holds(uint64_t first, uint64_t count) const;
  // Whether `slot` holds the bytes of the same slot of `other`, a region of this size.
  bool holds_slot_of(const Region& other, uint64_t slot) const;
  void clear_slot(uint64_t slot);

  // For messages of which some are lost, so that nobody knows which one takes which slot: the same
  // bytes in every slot.
  void fill_alike();
  // Whether every byte is the one that fill_alike() would write there, or zero.
  bool holds_nothing_else() const;

 private:
  uint64_t slot_;
  uint64_t slots_;
  std::byte* data_;
};

// The place of one message after the other, without a division for each.
class Cursor {
 public:
  explicit Cursor(const Region& region) : step_(region.slot_size()), end_(region.size()) {}
  uint64_t offset() const { return offset_; }
  // Messages so far.
  uint64_t sequence() const { return sequence_; }
  void advance() {
    ++sequence_;
    offset_ += step_;
    if (offset_ == end_) offset_ = 0;
  }

 private:
  uint64_t step_;
  uint64_t end_;
  uint64_t offset_ = 0;
  uint64_t sequence_ = 0;
};

}  // namespace weft::bench
