// The memory of a stream's blocks in which Writes of a peer land unasked (docs/design/24).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/spinlock.h"
#include "port/fd.h"

namespace weft::stream {

// Slots of one block each. The receiver's thread opens and shuts them; a Write to one that is shut,
// by whichever thread of the library, is led to memory of nobody's by a handler of SIGSEGV. A
// library that is loaded later finds that handler, and asks it first (design/06).
class Landing {
 public:
  // Where what is written for a slot goes.
  enum class SlotState : uint8_t {
    open,   // to its place
    shut,   // to its place no more; the first Write finds out
    away,   // to memory of nobody's
    ahead,  // the same, and it was a Write for a block that was not made ready yet
  };

  // The least distance of slots of so many bytes at which they are cheap to shut and to open: each
  // has page tables of its own then, which are moved aside and back as a whole (design/24). `bytes`
  // where it does not pay.
  static uint64_t step_of(uint64_t bytes);

  // `at` shows `file` from `offset` on, `slots` times `slot_bytes`. All are open.
  Landing(std::byte* at, uint32_t slots, uint64_t slot_bytes, const port::Fd& file,
          uint64_t offset);
  Landing(const Landing&) = delete;
  Landing& operator=(const Landing&) = delete;
  ~Landing();

  // The receiver's thread. All throw kit::Failure.
  void open(uint32_t slot);
  void shut(uint32_t slot);
  void lead_away(uint32_t slot);
  SlotState state(uint32_t slot) const;
  // A Write to `slot` while it is shut, and then to those behind it, is one ahead; kNone: to none.
  void expect_nothing_at(uint32_t slot) { frontier_.store(slot, std::memory_order_relaxed); }
  static constexpr uint32_t kNone = ~uint32_t{0};

  // The handler: whether `address` was in a slot that was shut, and can be written now.
  bool gives_way_at(const void* address);
  // Of the chain of all that there are.
  Landing* next() const { return next_; }

 private:
  struct Slot {
    SlotState state = SlotState::open;
    bool aside = false;  // its page tables are where nobody writes
  };
  std::byte* place(uint32_t slot) const { return at_ + slot * slot_bytes_; }
  std::byte* aside(uint32_t slot) const { return aside_ + slot * slot_bytes_; }
  void find_room_aside();
  void give_up_room_aside();
  void move_aside(uint32_t slot);
  void move_back(uint32_t slot);

  std::byte* const at_;
  const uint64_t slot_bytes_;
  const port::Fd& file_;
  const uint64_t offset_;
  std::atomic<uint32_t> frontier_{kNone};
  std::byte* aside_ = nullptr;  // of slots with page tables of their own; as long as they are
  mutable Spinlock lock_;       // of slots_: held by a handler or by who causes no fault
  std::vector<Slot> slots_;
  Landing* next_ = nullptr;
};

}  // namespace weft::stream
