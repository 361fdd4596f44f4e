// The blocks of one stream, in the memory of a Ring: where packets land, which blocks consumers
// have, and how they are told of the next one.
#pragma once

#include <weft/stream_ring.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "stream/landing.h"

namespace weft::stream {

class Ring;

// Block b lives in the memory of slot b % blocks().
class BlockStore {
 public:
  BlockStore(Ring& ring, uint32_t stream);

  uint32_t blocks() const { return blocks_; }
  uint32_t packets() const { return packets_; }
  // Where packet `number` lands.
  std::byte* place(uint64_t number) const;
  // What has landed there, at its place or elsewhere.
  const std::byte* landed(uint64_t number) const;
  std::byte* landing() const { return landing_; }
  uint64_t landing_bytes() const { return blocks_ * block_step_; }

  // Whether nobody reads what lies in the memory of block `block`.
  bool is_free(uint64_t block) const;
  // --- rings for landing (stream/landing.h); in others nothing lands unasked
  // Makes ready for what a peer will write for block `block`: it lands in the block's memory, or,
  // while a consumer reads that, where it does no harm. `came`: some of it has come already, and
  // what is led away stays so. Blocks are led one after the other.
  void lead(uint64_t block, bool came = false);
  // What is written for it goes to its memory.
  bool is_led_here(uint64_t block) const;
  // The next one to be led is `block`; a Write for it or those behind is `ahead`. Unset: nobody can
  // tell one from a late one.
  void expect_nothing_for(std::optional<uint64_t> block);
  bool is_ahead(uint64_t block) const;
  // Nothing changes what lies in the block's memory any more, or nobody reads it before settled().
  void settle(uint64_t block);
  void settled();
  // No sender is there: what one that nobody announces writes lands wherever nobody reads.
  void rest();

  // Shows the block to the consumer; `valid` has a bit for each packet.
  void publish(uint64_t block, const std::vector<uint8_t>& valid, uint32_t received);

  // --- a consumer inside this process
  // The oldest block that is not released, or the one that was published `later` ones after it.
  const weft_stream_block* unreleased(uint64_t later = 0) const;
  const std::byte* data_of(const weft_stream_block* block) const;
  void release();

  // Whether packet `number` is in a block that was published and whose memory is not used again.
  bool has(uint64_t number) const;
  // Releases all blocks if `consumer` is the one (0: nobody).
  bool release_all_for(uint32_t consumer);
  // Lets a consumer that has died go. To be called now and then.
  void look_after_consumer();
  bool has_consumer() const;
  // A consumer of this process is there from now on.
  void attach();
  // Published blocks that are not released.
  uint64_t filled() const;
  weft_stream_state& state() { return *state_; }

 private:
  static constexpr uint64_t kNever = ~uint64_t{0};
  struct Slot {
    uint64_t published_as = kNever;  // its place in the order of all published ones
  };
  uint64_t place_of(uint64_t number) const {
    return number / packets_ % blocks_ * block_step_ + number % packets_ * slot_bytes_;
  }
  uint32_t slot_of(uint64_t block) const { return static_cast<uint32_t>(block % blocks_); }
  bool claim();

  Ring& ring_;
  const uint32_t stream_;
  const uint32_t blocks_;
  const uint32_t packets_;
  const uint32_t slot_bytes_;
  const uint64_t block_bytes_;  // of the packets
  const uint64_t block_step_;   // from one block to the next
  weft_stream_state* state_;
  weft_stream_block* headers_;
  std::byte* data_;     // as consumers see it
  std::byte* landing_;  // as packets are written
  std::unique_ptr<Landing> redirect_;
  bool rests_ = true;     // all slots are open
  bool claimed_ = false;  // nobody reads, and nobody can begin to
  std::vector<Slot> slots_;
  bool own_consumer_ = false;  // of this process: it needs no lock
};

// Wakes whoever waits for this word of the ring to change.
void wake(uint32_t& word);

}  // namespace weft::stream
