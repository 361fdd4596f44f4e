#include "stream/block_store.h"

#include <unistd.h>

#include <climits>
#include <cstring>
#include <utility>

#include "base/wall_clock.h"
#include "kit/clock.h"
#include "stream/ring.h"

namespace weft::stream {

void wake(uint32_t& word) {
  __atomic_add_fetch(&word, 1, __ATOMIC_SEQ_CST);
  ::syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

BlockStore::BlockStore(Ring& ring, uint32_t stream)
    : ring_(ring),
      stream_(stream),
      blocks_(ring.spec().blocks),
      packets_(ring.spec().packets_per_block),
      slot_bytes_(ring.spec().slot_bytes),
      block_bytes_(ring.spec().block_bytes()),
      block_step_(ring.header_->block_bytes),
      state_(reinterpret_cast<weft_stream_state*>(ring.at(ring.header_->streams_offset)) + stream),
      headers_(reinterpret_cast<weft_stream_block*>(ring.at(ring.header_->headers_offset)) +
               uint64_t{stream} * blocks_),
      data_(ring.at(ring.header_->data_offset) + uint64_t{stream} * blocks_ * block_step_),
      landing_(ring.landing_ + uint64_t{stream} * blocks_ * block_step_),
      slots_(blocks_) {
  if (ring.spec().landing) {
    const uint64_t offset = ring.header_->data_offset + uint64_t{stream} * blocks_ * block_step_;
    redirect_ = std::make_unique<Landing>(landing_, blocks_, block_step_, ring.file_, offset);
  }
}

std::byte* BlockStore::place(uint64_t number) const {
  return landing_ + place_of(number);
}

const std::byte* BlockStore::landed(uint64_t number) const {
  const bool elsewhere =
      redirect_ && redirect_->state(slot_of(number / packets_)) > Landing::SlotState::shut;
  return (elsewhere ? landing_ : data_) + place_of(number);
}

bool BlockStore::is_free(uint64_t block) const {
  const Slot& slot = slots_[block % blocks_];
  return slot.published_as == kNever ||
         __atomic_load_n(&state_->tail, __ATOMIC_ACQUIRE) > slot.published_as;
}

void BlockStore::lead(uint64_t block, bool came) {
  const uint32_t slot = slot_of(block);
  const Landing::SlotState state = redirect_->state(slot);
  if (state == Landing::SlotState::ahead || (came && state == Landing::SlotState::away)) return;
  if (is_free(block)) {
    redirect_->open(slot);
  } else {
    redirect_->lead_away(slot);
    rests_ = false;
  }
}

bool BlockStore::is_led_here(uint64_t block) const {
  return redirect_->state(slot_of(block)) == Landing::SlotState::open;
}

void BlockStore::expect_nothing_for(std::optional<uint64_t> block) {
  redirect_->expect_nothing_at(block ? slot_of(*block) : Landing::kNone);
}

bool BlockStore::is_ahead(uint64_t block) const {
  return redirect_->state(slot_of(block)) == Landing::SlotState::ahead;
}

void BlockStore::rest() {
  if (rests_) return;
  rests_ = true;
  for (uint32_t slot = 0; slot < blocks_; ++slot) {
    if (is_free(slot)) {
      redirect_->open(slot);
    } else {
      redirect_->shut(slot);
      rests_ = false;
    }
  }
}

// A consumer that comes meanwhile waits (weft_stream_attach()).
bool BlockStore::claim() {
  uint32_t nobody = 0;
  return __atomic_compare_exchange_n(&state_->consumer, &nobody, WEFT_STREAM_RECEIVER, false,
                                     __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

void BlockStore::settle(uint64_t block) {
  claimed_ = claim();
  if (claimed_) {
    redirect_->open(slot_of(block));
  } else {
    redirect_->shut(slot_of(block));
    rests_ = false;
  }
}

void BlockStore::settled() {
  if (!std::exchange(claimed_, false)) return;
  __atomic_store_n(&state_->tail, state_->head, __ATOMIC_SEQ_CST);
  __atomic_store_n(&state_->consumer, 0, __ATOMIC_SEQ_CST);
}

void BlockStore::publish(uint64_t block, const std::vector<uint8_t>& valid, uint32_t received) {
  const auto slot = static_cast<uint32_t>(block % blocks_);
  weft_stream_block& h = headers_[slot];
  h.magic = WEFT_STREAM_MAGIC;
  h.number = block;
  h.stream = stream_;
  h.packets = packets_;
  h.received = received;
  h.pad = 0;
  h.packet_bytes = ring_.header_->packet_bytes;
  h.slot_bytes = slot_bytes_;
  h.block_bytes = block_bytes_;
  h.closed_ns = wall_clock_ns();
  std::memcpy(h.valid, valid.data(), valid.size());
  const uint64_t sequence = state_->head;
  state_->order[sequence % blocks_] = slot;
  slots_[slot].published_as = sequence;
  __atomic_store_n(&state_->head, sequence + 1, __ATOMIC_SEQ_CST);
  if (claimed_ || release_all_for(0)) return;
  wake(state_->signal);
  wake(ring_.header_->signal);
}

bool BlockStore::has(uint64_t number) const {
  const uint64_t block = number / packets_;
  const uint64_t i = number % packets_;
  const weft_stream_block& h = headers_[block % blocks_];
  return slots_[block % blocks_].published_as != kNever && h.number == block &&
         (h.valid[i / 8] >> (i % 8) & 1) != 0;
}

bool BlockStore::has_consumer() const {
  return __atomic_load_n(&state_->consumer, __ATOMIC_SEQ_CST) != 0;
}

// A consumer that attaches at this moment waits until this is done: otherwise the block that it
// finds first would be taken from under it.
bool BlockStore::release_all_for(uint32_t consumer) {
  if (!__atomic_compare_exchange_n(&state_->consumer, &consumer, WEFT_STREAM_RECEIVER, false,
                                   __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
    return false;
  }
  __atomic_store_n(&state_->tail, state_->head, __ATOMIC_SEQ_CST);
  __atomic_store_n(&state_->consumer, 0, __ATOMIC_SEQ_CST);
  return true;
}

void BlockStore::attach() {
  own_consumer_ = true;
  __atomic_store_n(&state_->consumer, static_cast<uint32_t>(::getpid()), __ATOMIC_SEQ_CST);
}

// A consumer of another container has a number of its own there, which may be anybody's here: its
// lock tells whether it lives.
void BlockStore::look_after_consumer() {
  if (own_consumer_) return;
  if (!has_consumer()) {
    (void)release_all_for(0);
    return;
  }
  const int file = ring_.file_.get();
  const uint64_t lock = weft_stream_lock_of(ring_.header_, stream_);
  // With the lock in hand: nobody can come meanwhile, by the same number maybe.
  if (weft_stream_lock(file, lock, 0) != 0) return;
  // What it left unread, nobody will read.
  if (const uint32_t pid = __atomic_load_n(&state_->consumer, __ATOMIC_SEQ_CST); pid != 0) {
    (void)release_all_for(pid);
  }
  weft_stream_unlock(file, lock);
}

const weft_stream_block* BlockStore::unreleased(uint64_t later) const {
  const uint64_t place = __atomic_load_n(&state_->tail, __ATOMIC_ACQUIRE) + later;
  if (place >= __atomic_load_n(&state_->head, __ATOMIC_ACQUIRE)) return nullptr;
  return &headers_[state_->order[place % blocks_]];
}

const std::byte* BlockStore::data_of(const weft_stream_block* block) const {
  return data_ + static_cast<uint64_t>(block - headers_) * block_step_;
}

void BlockStore::release() {
  __atomic_add_fetch(&state_->tail, 1, __ATOMIC_SEQ_CST);
}

uint64_t BlockStore::filled() const {
  const uint64_t tail = __atomic_load_n(&state_->tail, __ATOMIC_ACQUIRE);
  const uint64_t head = __atomic_load_n(&state_->head, __ATOMIC_ACQUIRE);
  return head > tail ? head - tail : 0;
}

}  // namespace weft::stream
