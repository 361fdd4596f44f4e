// The chunk test's own rules, without a network: when a chunk may leave, and what the target's look
// at its buffers sees.
#include "bench/chunks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "kit/failure.h"

namespace weft::bench {
namespace {

using ::testing::ElementsAre;

constexpr uint64_t kSize = 5000;

Phase warm_up_of(uint64_t messages) {
  return {.warm_up = true, .messages = messages, .duration_ns = 0};
}

TEST(SendChunks, WaitsForTheAnswerThatFreesTheBuffer) {
  std::vector<std::string> steps;
  uint64_t next = 4;
  const Done done = send_chunks(
      warm_up_of(4), next,
      [&](uint64_t chunk, bool last) {
        steps.push_back("fill " + std::to_string(chunk) + (last ? ", last" : ""));
      },
      [&](uint64_t chunk) { steps.push_back("await " + std::to_string(chunk)); });
  EXPECT_THAT(steps, ElementsAre("fill 4", "fill 5", "await 4", "fill 6", "await 5", "fill 7, last",
                                 "await 6", "await 7"));
  EXPECT_EQ(done.messages, 4U);
  EXPECT_EQ(next, 8U);
}

TEST(SendChunks, OneChunkIsTheLast) {
  std::vector<bool> lasts;
  uint64_t next = 0;
  unsigned answers = 0;
  (void)send_chunks(
      {.warm_up = false, .messages = 0, .duration_ns = 0}, next,
      [&](uint64_t, bool last) { lasts.push_back(last); }, [&](uint64_t) { ++answers; });
  EXPECT_THAT(lasts, ElementsAre(true));
  EXPECT_EQ(answers, 1U);
}

// The target of `chunks` chunks of a warm-up; before each note, arrive(chunk, buffer) does what the
// network would.
class TakeChunks : public ::testing::Test {
 protected:
  TakeChunks() : source_(kSize, kChunkBuffers), sink_(kSize, kChunkBuffers), proof_(sink_) {
    source_.fill();
  }
  std::byte* sink(uint64_t chunk) { return sink_.data() + chunk % kChunkBuffers * kSize; }
  void place(uint64_t chunk) {
    std::memcpy(sink(chunk), source_.data() + chunk % kChunkBuffers * kSize, kSize);
  }
  template <class Arrive>
  void take(uint64_t chunks, Arrive&& arrive) {
    take_chunks(
        warm_up_of(chunks), next_, proof_,
        [&](uint64_t chunk) {
          arrive(chunk);
          return Note{.chunk = chunk, .last = chunk + 1 == chunks ? 1U : 0U};
        },
        [&](const Note& note) { answers_.push_back(note.chunk); });
  }
  // After the warm-up, when `count` chunks have come in the measurement.
  bool intact(uint64_t count) {
    sink_.clear();
    for (uint64_t i = 0; i < count; ++i) place(next_ + i);
    return proof_.intact(next_, count);
  }

  Region source_;
  Region sink_;
  ChunkProof proof_;
  uint64_t next_ = 0;
  std::vector<uint64_t> answers_;
};

TEST_F(TakeChunks, AnswersEachUpToTheLast) {
  take(5, [&](uint64_t chunk) { place(chunk); });
  EXPECT_THAT(answers_, ElementsAre(0, 1, 2, 3, 4));
  EXPECT_TRUE(intact(1));
  EXPECT_TRUE(intact(7));
}

TEST_F(TakeChunks, NoteBeforeItsDataIsSeen) {
  take(5, [&](uint64_t chunk) {
    place(chunk);
    if (chunk == 3) sink(chunk)[kSize - 1] = std::byte{0};
  });
  EXPECT_FALSE(intact(2));
}

TEST_F(TakeChunks, DataBeforeItsBufferIsFreeIsSeen) {
  // What chunk 4 brought is there while 2, of the same buffer, is not answered: the target's
  // clearing takes it.
  take(5, [&](uint64_t chunk) {
    if (chunk == 2) place(4);
    if (chunk != 4) place(chunk);
  });
  EXPECT_FALSE(intact(2));
}

TEST_F(TakeChunks, WhatIsMeasuredIsLookedAtOnceAtItsEnd) {
  take(2, [&](uint64_t chunk) { place(chunk); });
  EXPECT_TRUE(intact(2));
  sink_.data()[7] ^= std::byte{1};
  EXPECT_FALSE(proof_.intact(2, 2));
}

TEST_F(TakeChunks, NoteAboutAnotherChunkIsRefused) {
  EXPECT_THROW(expect_chunk({.chunk = 3, .last = 0}, 2), kit::Failure);
  EXPECT_NO_THROW(expect_chunk({.chunk = 2, .last = 1}, 2));
}

}  // namespace
}  // namespace weft::bench
