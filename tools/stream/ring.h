// The memory that packets land in and that consumers read, as include/weft/stream_ring.h shows it.
#pragma once

#include <weft/stream_ring.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "port/fd.h"
#include "stream/block_store.h"
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
  // Of the packets of a block, in whole pages.
  uint64_t block_bytes() const;
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
