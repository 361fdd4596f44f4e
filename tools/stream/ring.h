// The memory that packets land in and that consumers read, as include/weft/stream_ring.h shows it.
#pragma once

#include <weft/stream_ring.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "port/fd.h"
#include "stream/landing.h"
#include "stream/packet.h"

namespace weft::stream {

struct RingSpec {
  std::string name;  // in /dev/shm; empty: memory that this process alone knows
  Shape shape;
  uint32_t streams = 1;
  uint32_t blocks = 16;
  uint32_t packets_per_block = 256;
  uint32_t slot_bytes = 0;
  // Writes of a peer land here without being asked: a block that its consumer still reads has to be
  // taken out of their way.
  bool landing = false;
  // Their sender asks where blocks are, so that these can lie apart and are cheap to shut.
  bool apart = false;

  // Throws kit::Failure.
  void check() const;
};

class Ring;

// The blocks of one stream. Block b lives in the memory of slot b % blocks().
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
  std::unique_ptr<Landing> ways_;
  bool rests_ = true;     // all slots are open
  bool claimed_ = false;  // nobody reads, and nobody can begin to
  std::vector<Slot> slots_;
  bool own_consumer_ = false;  // of this process: it needs no lock
};

class Ring {
 public:
  // Takes the place of a ring of that name whose receiver is gone. Throws kit::Failure while it
  // lives.
  explicit Ring(const RingSpec& spec);
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;
  // Tells consumers that nothing more comes. The file goes; who has it mapped can read on.
  ~Ring();

  const RingSpec& spec() const { return spec_; }
  weft_stream_ring& header() { return *header_; }
  BlockStore& stream(uint32_t i) { return streams_[i]; }
  uint64_t size() const { return header_->size; }
  // Behind the last packet that a receiver which was killed published in the ring of this name.
  std::optional<uint64_t> end_before(uint32_t stream) const {
    return stream < ends_before_.size() ? ends_before_[stream] : std::nullopt;
  }

 private:
  friend class BlockStore;
  void make_memory(const weft_stream_ring& header, uint64_t block_bytes);
  std::byte* at(uint64_t offset) const { return base_ + offset; }

  RingSpec spec_;
  port::Fd file_;
  std::byte* base_ = nullptr;
  weft_stream_ring* header_ = nullptr;
  std::byte* landing_ = nullptr;  // a second view of the data; of rings for landing
  std::vector<BlockStore> streams_;
  std::vector<std::optional<uint64_t>> ends_before_;
};

}  // namespace weft::stream
