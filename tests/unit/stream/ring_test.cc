#include "stream/ring.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <thread>
#include <utility>

#include "kit/failure.h"
#include "kit/free_memory.h"
#include "ring_under_test.h"
#include "stream/ledger.h"

namespace weft::stream {
namespace {

// Writes a byte into each packet of a block, as a peer would, and publishes it.
void land(BlockStore& store, uint64_t block, int value) {
  for (uint32_t i = 0; i < store.packets(); ++i) {
    std::memset(store.place(block * store.packets() + i), value, 32);
  }
}

TEST(Ring, IsWhatTheHeaderSays) {
  const std::string name = own_name("header");
  Ring ring{spec_of(name, true)};
  weft_stream_ring* seen = weft_stream_open(name.c_str());
  ASSERT_NE(seen, nullptr);
  EXPECT_EQ(seen->streams, 2U);
  EXPECT_EQ(seen->packet_bytes, 32U);
  EXPECT_EQ(seen->header_bytes, 8U);
  weft_stream stream{};
  ASSERT_EQ(weft_stream_attach(seen, 1, &stream), 0);
  EXPECT_EQ(weft_stream_front(&stream), nullptr);

  land(ring.stream(1), 6, 'x');
  std::memset(ring.stream(1).place(6 * 8 + 2), 'y', 32);
  ring.stream(1).publish(6, {0b00000101}, 2);
  ASSERT_EQ(weft_stream_wait(&stream, 1000), 1);
  const weft_stream_block* block = weft_stream_front(&stream);
  ASSERT_NE(block, nullptr);
  EXPECT_EQ(block->number, 6U);
  EXPECT_EQ(block->stream, 1U);
  EXPECT_EQ(block->received, 2U);
  const uint8_t* packet = weft_stream_packet(&stream, block, 0);
  ASSERT_NE(packet, nullptr);
  EXPECT_EQ(packet[31], 'x');
  EXPECT_EQ(weft_stream_packet(&stream, block, 1), nullptr);
  packet = weft_stream_packet(&stream, block, 2);
  ASSERT_NE(packet, nullptr);
  EXPECT_EQ(packet[0], 'y');
  weft_stream_release(&stream);
  EXPECT_EQ(weft_stream_front(&stream), nullptr);
  weft_stream_close(seen);
}

TEST(Ring, HasOneConsumerAStream) {
  const std::string name = own_name("one");
  Ring ring{spec_of(name, false)};
  weft_stream_ring* seen = weft_stream_open(name.c_str());
  ASSERT_NE(seen, nullptr);
  weft_stream first{};
  weft_stream second{};
  ASSERT_EQ(weft_stream_attach(seen, 0, &first), 0);
  EXPECT_EQ(weft_stream_attach(seen, 0, &second), -1);
  EXPECT_EQ(errno, EBUSY);
  EXPECT_EQ(weft_stream_attach(seen, 2, &second), -1);
  EXPECT_EQ(errno, EINVAL);
  weft_stream_detach(&first);
  EXPECT_EQ(weft_stream_attach(seen, 0, &second), 0);
  weft_stream_close(seen);
}

TEST(Ring, WithoutAConsumerBlocksAreFreeAtOnce) {
  Ring ring{spec_of({}, false)};
  ring.stream(0).publish(0, {0xff}, 8);
  EXPECT_TRUE(ring.stream(0).is_free(4));
  EXPECT_EQ(ring.stream(0).filled(), 0U);
}

// What the file says later is not believed.
TEST(Ring, IsUnmappedByTheSizeThatItWasOpenedWith) {
  const std::string name = own_name("size");
  Ring ring{spec_of(name, false)};
  weft_stream_ring* seen = weft_stream_open(name.c_str());
  ASSERT_NE(seen, nullptr);
  auto* last = reinterpret_cast<unsigned char*>(seen) + ring.header().size - 4096;
  const uint64_t size = std::exchange(ring.header().size, 4096);
  weft_stream_close(seen);
  unsigned char there = 0;
  EXPECT_EQ(::mincore(last, 4096, &there), -1) << "it is still mapped";
  EXPECT_EQ(errno, ENOMEM);
  ring.header().size = size;
}

TEST(Ring, TheLastBlocksComeBeforeTheEnd) {
  const std::string name = own_name("last");
  auto ring = std::make_unique<Ring>(spec_of(name, false));
  weft_stream_ring* seen = weft_stream_open(name.c_str());
  ASSERT_NE(seen, nullptr);
  weft_stream stream{};
  ASSERT_EQ(weft_stream_attach(seen, 0, &stream), 0);
  ring->stream(0).publish(3, {0xff}, 8);
  ring.reset();
  EXPECT_EQ(weft_stream_wait(&stream, 1000), 1);
  weft_stream_release(&stream);
  EXPECT_EQ(weft_stream_wait(&stream, 1000), -1);
  weft_stream_close(seen);
}

TEST(Ring, WhatWasReleasedMeanwhileIsNotReleasedAgain) {
  const std::string name = own_name("twice");
  Ring ring{spec_of(name, false)};
  weft_stream_ring* seen = weft_stream_open(name.c_str());
  ASSERT_NE(seen, nullptr);
  weft_stream stream{};
  ASSERT_EQ(weft_stream_attach(seen, 0, &stream), 0);
  BlockStore& store = ring.stream(0);
  store.publish(0, {0xff}, 8);
  ASSERT_NE(weft_stream_front(&stream), nullptr);
  // The receiver takes the consumer for dead.
  ASSERT_TRUE(store.release_all_for(static_cast<uint32_t>(::getpid())));
  weft_stream_release(&stream);
  EXPECT_EQ(store.state().tail, store.state().head);
  EXPECT_EQ(weft_stream_front(&stream), nullptr);
  // Nor does its farewell send the next one away.
  store.state().consumer = 1;
  weft_stream_detach(&stream);
  EXPECT_EQ(store.state().consumer, 1U);
  store.state().consumer = 0;
  weft_stream_close(seen);
}

TEST(Ring, WhoAttachesWaitsForTheReceiversRelease) {
  const std::string name = own_name("claim");
  Ring ring{spec_of(name, false)};
  weft_stream_ring* seen = weft_stream_open(name.c_str());
  ASSERT_NE(seen, nullptr);
  weft_stream_state& state = ring.stream(0).state();
  state.consumer = WEFT_STREAM_RECEIVER;
  std::thread receiver{[&] { __atomic_store_n(&state.consumer, 0, __ATOMIC_SEQ_CST); }};
  weft_stream stream{};
  EXPECT_EQ(weft_stream_attach(seen, 0, &stream), 0);
  receiver.join();
  weft_stream_close(seen);
}

TEST(Ring, AFileThatTellsLiesIsNotOpened) {
  const std::string name = own_name("lies");
  Ring ring{spec_of(name, false)};
  weft_stream_ring& h = ring.header();
  const weft_stream_ring good = h;
  const auto opens = [&] {
    weft_stream_ring* seen = weft_stream_open(name.c_str());
    if (seen != nullptr) weft_stream_close(seen);
    return seen != nullptr;
  };
  EXPECT_TRUE(opens());
  h.headers_offset = uint64_t{1} << 40;
  EXPECT_FALSE(opens());
  h = good;
  h.streams = 1000;
  EXPECT_FALSE(opens());
  h = good;
  h.blocks = 993;
  EXPECT_FALSE(opens());
  h = good;
  h.block_bytes *= 2;
  EXPECT_FALSE(opens());
  h = good;
  h.slot_bytes = 1 << 20;
  EXPECT_FALSE(opens());
  h = good;
  h.data_offset = h.size;
  EXPECT_FALSE(opens());
  h = good;
  EXPECT_TRUE(opens());
}

// A Write that lands in a block that the consumer still reads must not reach it.
TEST(Ring, LateWritesDoNotReachABlockThatIsRead) {
  Ring ring{spec_of({}, true)};
  BlockStore& store = ring.stream(0);
  store.attach();
  store.lead(1);
  land(store, 1, 'a');
  store.publish(1, {0xff}, 8);
  const weft_stream_block* block = store.unreleased();
  ASSERT_NE(block, nullptr);
  store.lead(5);
  EXPECT_FALSE(store.is_led_here(5));
  land(store, 5, 'b');
  EXPECT_EQ(store.data_of(block)[100], std::byte{'a'});

  store.release();
  store.lead(9);
  EXPECT_TRUE(store.is_led_here(9));
  land(store, 9, 'c');
  store.publish(9, {0xff}, 8);
  block = store.unreleased();
  ASSERT_NE(block, nullptr);
  EXPECT_EQ(store.data_of(block)[100], std::byte{'c'});
}

// Though the receiver's thread has not looked since: nobody led the Write anywhere.
TEST(Ring, NoWriteReachesABlockThatIsRead) {
  Ring ring{spec_of({}, true)};
  BlockStore& store = ring.stream(0);
  store.attach();
  Ledger ledger{store, {.hold = 1, .guard = 1}};
  ledger.begin(0, std::nullopt);
  land(store, 0, 'a');
  for (uint64_t n = 0; n < 8; ++n) (void)ledger.arrive(n);
  ledger.settle();
  const weft_stream_block* block = store.unreleased();
  ASSERT_NE(block, nullptr);
  land(store, 4, 'b');
  EXPECT_EQ(store.data_of(block)[100], std::byte{'a'});
  // What was led away is not published, and told.
  for (uint64_t n = 8; n < 40; ++n) (void)ledger.arrive(n);
  ledger.settle();
  EXPECT_EQ(ledger.counts().overrun, 8U);
  EXPECT_EQ(store.data_of(block)[100], std::byte{'a'});
}

// Blocks that are far larger are shut by moving their page tables (design/24). Between them is
// nothing, neither in memory nor for consumers.
TEST(Ring, BlocksMayLieApart) {
  const std::string name = own_name("apart");
  RingSpec spec = spec_of(name, true);
  spec.slot_bytes = 32 << 10;
  spec.apart = true;
  constexpr uint64_t kBytes = 256 << 10;  // of a block
  Ring ring{spec};
  weft_stream_ring* seen = weft_stream_open(name.c_str());
  ASSERT_NE(seen, nullptr);
  EXPECT_EQ(seen->block_bytes, Landing::step_of(kBytes));
  struct stat st {};
  ASSERT_EQ(::stat(("/dev/shm/" + name).c_str(), &st), 0);
  EXPECT_LE(static_cast<uint64_t>(st.st_blocks) * 512, seen->data_offset + 8 * kBytes);

  weft_stream stream{};
  ASSERT_EQ(weft_stream_attach(seen, 1, &stream), 0);
  BlockStore& store = ring.stream(1);
  for (uint64_t block = 0; block < 12; ++block) {
    store.lead(block);
    land(store, block, static_cast<int>('a' + block));
    store.settle(block);
    store.publish(block, {0xff}, 8);
    store.settled();
    land(store, block + 4, 'x');  // a turn too early
    const weft_stream_block* front = weft_stream_front(&stream);
    ASSERT_NE(front, nullptr);
    EXPECT_EQ(front->block_bytes, kBytes);
    EXPECT_EQ(weft_stream_packet(&stream, front, 7)[31], 'a' + block);
    EXPECT_EQ(*store.landed((block + 4) * 8), std::byte{'x'});
    weft_stream_release(&stream);
  }
  ASSERT_EQ(::stat(("/dev/shm/" + name).c_str(), &st), 0);
  EXPECT_LE(static_cast<uint64_t>(st.st_blocks) * 512, seen->data_offset + 8 * kBytes);
  weft_stream_close(seen);
}

// Nobody reads: nothing has to be kept, and a Write costs what it always did.
TEST(Ring, WithoutAConsumerNothingIsShut) {
  Ring ring{spec_of({}, true)};
  BlockStore& store = ring.stream(0);
  Ledger ledger{store, {.hold = 1, .guard = 1}};
  ledger.begin(0, std::nullopt);
  for (uint64_t n = 0; n < 32; ++n) (void)ledger.arrive(n);
  ledger.settle();
  for (uint64_t block = 0; block < 4; ++block) EXPECT_TRUE(store.is_led_here(block)) << block;
  EXPECT_EQ(store.filled(), 0U);
  EXPECT_FALSE(store.has_consumer());
}

TEST(Ring, RefusesWhatCannotBe) {
  RingSpec spec = spec_of({}, false);
  spec.blocks = 3;
  EXPECT_THROW(Ring{spec}, kit::Failure);
  spec = spec_of({}, false);
  spec.packets_per_block = WEFT_STREAM_MOST_PACKETS + 1;
  EXPECT_THROW(Ring{spec}, kit::Failure);
  spec = spec_of("a/b", false);
  EXPECT_THROW(Ring{spec}, kit::Failure);
}

// The kernel would end other processes for it.
TEST(Ring, IsRefusedWhereItIsMoreThanTheFreeMemory) {
  const std::string name = own_name("large");
  RingSpec spec = spec_of(name, false);
  spec.blocks = 500;
  spec.packets_per_block = WEFT_STREAM_MOST_PACKETS;
  const uint64_t packets = uint64_t{spec.streams} * spec.blocks * spec.packets_per_block;
  spec.slot_bytes = static_cast<uint32_t>(kit::free_memory() / packets / 64 * 64 + 64);
  try {
    const Ring ring{spec};
    FAIL() << "a ring of all memory";
  } catch (const kit::Failure& failure) {
    EXPECT_THAT(failure.what(), ::testing::HasSubstr("of memory that are free"));
  }
  struct stat st {};
  EXPECT_NE(::stat(("/dev/shm/" + name).c_str(), &st), 0);
}

}  // namespace
}  // namespace weft::stream
