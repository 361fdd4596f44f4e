#include "bench/chunks.h"

#include <fmt/format.h>

#include "kit/failure.h"

namespace weft::bench {

void expect_chunk(const Note& note, uint64_t chunk) {
  if (note.chunk == chunk) return;
  throw kit::Failure{fmt::format("a note is about chunk {} and not {}", note.chunk, chunk)};
}

ChunkProof::ChunkProof(Region& sink) : sink_(sink), expected_(sink.slot_size(), sink.slots()) {
  expected_.fill();
}

void ChunkProof::look_at(uint64_t chunk) {
  const uint64_t slot = chunk % sink_.slots();
  whole_ = whole_ && sink_.holds_slot_of(expected_, slot);
  sink_.clear_slot(slot);
}

bool ChunkProof::intact(uint64_t first, uint64_t count) const {
  return whole_ && sink_.holds(first, count);
}

}  // namespace weft::bench
