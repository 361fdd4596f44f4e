// The chunk test of the paper on SoftiWARP: the initiator fills one of the target's two buffers,
// piece by piece, and says so in a note; the target answers when it is through with the chunk, and
// meanwhile the other buffer fills. What both transports have in common.
#pragma once

#include <cstdint>

#include "bench/note.h"
#include "bench/region.h"
#include "bench/work.h"

namespace weft::bench {

inline constexpr uint64_t kChunkBuffers = 2;

// Its Writes and the Send.
inline uint32_t requests_of_chunk(uint64_t size, uint64_t piece) {
  return static_cast<uint32_t>((size + piece - 1) / piece) + 1;
}

// Throws kit::Failure unless it is the note about this chunk.
void expect_chunk(const Note& note, uint64_t chunk);

// The target's proof. In the warm-up it looks at each chunk at the moment when its note is here,
// and clears the buffer: so data that lags behind its note is seen, and data that comes before its
// buffer is free. What is measured pays for no such looks; it leaves its data in both buffers.
class ChunkProof {
 public:
  explicit ChunkProof(Region& sink);
  // A chunk of the warm-up has been announced, and is not answered yet.
  void look_at(uint64_t chunk);
  // After `count` chunks that were measured, of which `first` is the first one.
  bool intact(uint64_t first, uint64_t count) const;

 private:
  Region& sink_;
  Region expected_;
  bool whole_ = true;  // all that was looked at
};

// The initiator's part of a phase: fill(chunk, last) sends a chunk and its note,
// await_answer(chunk) returns when that one is answered. The time ends with the last answer. `next`
// is the number of the next chunk.
template <class Fill, class AwaitAnswer>
Done send_chunks(const Phase& phase, uint64_t& next, Fill&& fill, AwaitAnswer&& await_answer) {
  const int64_t start = kit::now_ns();
  const int64_t end = start + phase.duration_ns;
  const uint64_t first = next;
  uint64_t answered = first;
  for (bool last = false; !last;) {
    if (next - answered == kChunkBuffers) await_answer(answered++);
    last = phase.warm_up ? next - first + 1 >= phase.messages : kit::now_ns() >= end;
    fill(next++, last);
  }
  while (answered < next) await_answer(answered++);
  return {
      .messages = next - first, .seconds = kit::seconds_between(start, kit::now_ns()), .extra = {}};
}

// The target's part: await_note(chunk) returns the next note, answer(note) sends it back.
template <class AwaitNote, class Answer>
void take_chunks(const Phase& phase, uint64_t& next, ChunkProof& proof, AwaitNote&& await_note,
                 Answer&& answer) {
  for (bool last = false; !last;) {
    const Note note = await_note(next);
    expect_chunk(note, next);
    if (phase.warm_up) proof.look_at(next);
    ++next;
    last = note.last != 0;
    answer(note);
  }
}

}  // namespace weft::bench
