#include "stream/ring.h"

#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstring>

#include "kit/clock.h"
#include "kit/failure.h"
#include "stream/ring_file.h"

namespace weft::stream {
namespace {

constexpr uint64_t kPage = 4096;                     // of the structs that consumers see
constexpr uint64_t kMostBlocks = uint64_t{1} << 48;  // of a stream; more is nobody's clock
constexpr uint64_t kMostApart =
    4096;  // blocks: each may be a mapping or two of the process's 65,530

static_assert(sizeof(weft_stream_state) == kPage);
static_assert(sizeof(weft_stream_block) == WEFT_STREAM_BLOCK_HEADER);
static_assert(sizeof(weft_stream_ring) <= kPage);

// What is mapped by itself begins at a page of the system's, which some have of 64 KiB.
uint64_t whole_pages(uint64_t bytes) {
  const auto page = static_cast<uint64_t>(::getpagesize());
  return (bytes + page - 1) / page * page;
}

uint64_t blocks_of(const RingSpec& spec) {
  return uint64_t{spec.blocks} * spec.streams;
}
uint64_t block_bytes_of(const RingSpec& spec) {
  return whole_pages(uint64_t{spec.packets_per_block} * spec.slot_bytes);
}

void wake(uint32_t& word) {
  __atomic_add_fetch(&word, 1, __ATOMIC_SEQ_CST);
  ::syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void end(weft_stream_ring& ring, std::byte* base) {
  __atomic_store_n(&ring.ended, 1, __ATOMIC_RELEASE);
  auto* states = reinterpret_cast<weft_stream_state*>(base + ring.streams_offset);
  for (uint32_t i = 0; i < ring.streams; ++i) wake(states[i].signal);
  wake(ring.signal);
}

// Behind the last packet that was published. Consumers can write everywhere in the ring.
std::optional<uint64_t> end_of_stream(const weft_stream_ring& ring, uint32_t stream) {
  const auto* base = reinterpret_cast<const std::byte*>(&ring);
  const auto& state =
      reinterpret_cast<const weft_stream_state*>(base + ring.streams_offset)[stream];
  const uint64_t head = __atomic_load_n(&state.head, __ATOMIC_ACQUIRE);
  if (head == 0) return {};
  const uint32_t slot = state.order[(head - 1) % ring.blocks];
  if (slot >= ring.blocks) return {};
  const auto& last = reinterpret_cast<const weft_stream_block*>(
      base + ring.headers_offset)[uint64_t{stream} * ring.blocks + slot];
  if (last.stream != stream || last.number >= kMostBlocks) return {};
  return (last.number + 1) * ring.packets_per_block;
}

// A receiver that was killed left its ring behind, and maybe consumers that still wait in it. One
// that lives has its file locked. How far it published each stream of packets of the same format.
std::vector<std::optional<uint64_t>> end_predecessor(const std::string& name, uint32_t format) {
  std::vector<std::optional<uint64_t>> ends;
  const port::Fd lock = locked_ring_file(name);
  if (!lock.valid()) return ends;
  if (weft_stream_ring* old = weft_stream_open(name.c_str()); old != nullptr) {
    for (uint32_t i = 0; old->format == format && i < old->streams; ++i) {
      ends.push_back(end_of_stream(*old, i));
    }
    end(*old, reinterpret_cast<std::byte*>(old));
    weft_stream_close(old);
  }
  remove_ring_file(name, lock);
  return ends;
}

}  // namespace

void RingSpec::check() const {
  if (packets_per_block == 0 || packets_per_block > WEFT_STREAM_MOST_PACKETS) {
    throw kit::Failure{"a block has 1 to 16384 packets"};
  }
  if (blocks < 4 || blocks > std::size(weft_stream_state{}.order)) {
    throw kit::Failure{"a ring has 4 to 992 blocks"};
  }
  if (streams == 0 || streams > 4096) throw kit::Failure{"there are 1 to 4096 streams"};
  if (name.find('/') != std::string::npos || name.size() > 200) {
    throw kit::Failure{"the name of a ring has no '/' and at most 200 characters"};
  }
}

Ring::Ring(const RingSpec& spec) : spec_(spec) {
  spec_.check();
  weft_stream_ring h{};
  h.version = WEFT_STREAM_VERSION;
  h.format = static_cast<uint32_t>(spec.shape.format);
  h.streams = spec.streams;
  h.blocks = spec.blocks;
  h.packets_per_block = spec.packets_per_block;
  h.packet_bytes = spec.shape.packet_bytes();
  h.header_bytes = spec.shape.header_bytes();
  h.slot_bytes = spec.slot_bytes;
  h.bits = spec.shape.bits;
  h.streams_offset = kPage;
  h.headers_offset = h.streams_offset + uint64_t{spec.streams} * sizeof(weft_stream_state);
  h.data_offset = whole_pages(h.headers_offset +
                              uint64_t{spec.streams} * spec.blocks * sizeof(weft_stream_block));
  const uint64_t bytes = block_bytes_of(spec);
  h.block_bytes = spec.apart && blocks_of(spec) <= kMostApart ? Landing::step_of(bytes) : bytes;
  h.size = h.data_offset + h.block_bytes * blocks_of(spec);
  h.session = static_cast<uint64_t>(kit::wall_ns());

  if (!spec.name.empty()) ends_before_ = end_predecessor(spec.name, h.format);
  make_memory(h, bytes);
  header_ = reinterpret_cast<weft_stream_ring*>(base_);
  *header_ = h;
  streams_.reserve(spec.streams);
  for (uint32_t i = 0; i < spec.streams; ++i) streams_.emplace_back(*this, i);
  // Last: consumers look at it first.
  __atomic_store_n(&header_->magic, WEFT_STREAM_MAGIC, __ATOMIC_RELEASE);
}

void Ring::make_memory(const weft_stream_ring& h, uint64_t block_bytes) {
  const uint64_t data = h.size - h.data_offset;
  if (h.block_bytes == block_bytes) {
    file_ = new_ring_file(spec_.name, h.size);
    base_ = map_shared(file_, 0, h.size);
    landing_ = spec_.landing ? map_shared(file_, h.data_offset, data) : at(h.data_offset);
    return;
  }
  const uint64_t blocks = blocks_of(spec_);
  const FileParts parts{
      .first = h.data_offset, .count = blocks, .bytes = block_bytes, .step = h.block_bytes};
  file_ = new_ring_file(spec_.name, h.size, &parts);
  base_ = map_shared_aligned(file_, 0, h.size, h.block_bytes);
  landing_ = map_shared_aligned(file_, h.data_offset, data, h.block_bytes);
  populate(base_, h.data_offset);
  for (uint64_t i = 0; i < blocks; ++i) {
    populate(at(h.data_offset + i * h.block_bytes), block_bytes);
    populate(landing_ + i * h.block_bytes, block_bytes);
  }
}

Ring::~Ring() {
  end(*header_, base_);
  remove_ring_file(spec_.name, file_);
  streams_.clear();
  if (spec_.landing) ::munmap(landing_, size() - header_->data_offset);
  ::munmap(base_, size());
}

BlockStore::BlockStore(Ring& ring, uint32_t stream)
    : ring_(ring),
      stream_(stream),
      blocks_(ring.spec().blocks),
      packets_(ring.spec().packets_per_block),
      slot_bytes_(ring.spec().slot_bytes),
      block_bytes_(block_bytes_of(ring.spec())),
      block_step_(ring.header_->block_bytes),
      state_(reinterpret_cast<weft_stream_state*>(ring.at(ring.header_->streams_offset)) + stream),
      headers_(reinterpret_cast<weft_stream_block*>(ring.at(ring.header_->headers_offset)) +
               uint64_t{stream} * blocks_),
      data_(ring.at(ring.header_->data_offset) + uint64_t{stream} * blocks_ * block_step_),
      landing_(ring.landing_ + uint64_t{stream} * blocks_ * block_step_),
      slots_(blocks_) {
  if (ring.spec().landing) {
    const uint64_t offset = ring.header_->data_offset + uint64_t{stream} * blocks_ * block_step_;
    ways_ = std::make_unique<Landing>(landing_, blocks_, block_step_, ring.file_, offset);
  }
}

std::byte* BlockStore::place(uint64_t number) const {
  return landing_ + place_of(number);
}

const std::byte* BlockStore::landed(uint64_t number) const {
  const bool elsewhere = ways_ && ways_->way(slot_of(number / packets_)) > Landing::Way::shut;
  return (elsewhere ? landing_ : data_) + place_of(number);
}

bool BlockStore::is_free(uint64_t block) const {
  const Slot& slot = slots_[block % blocks_];
  return slot.published_as == kNever ||
         __atomic_load_n(&state_->tail, __ATOMIC_ACQUIRE) > slot.published_as;
}

void BlockStore::lead(uint64_t block, bool came) {
  const uint32_t slot = slot_of(block);
  const Landing::Way way = ways_->way(slot);
  if (way == Landing::Way::ahead || (came && way == Landing::Way::away)) return;
  if (is_free(block)) {
    ways_->open(slot);
  } else {
    ways_->lead_away(slot);
    rests_ = false;
  }
}

bool BlockStore::is_led_here(uint64_t block) const {
  return ways_->way(slot_of(block)) == Landing::Way::open;
}

void BlockStore::expect_nothing_for(std::optional<uint64_t> block) {
  ways_->expect_nothing_at(block ? slot_of(*block) : Landing::kNone);
}

bool BlockStore::is_ahead(uint64_t block) const {
  return ways_->way(slot_of(block)) == Landing::Way::ahead;
}

void BlockStore::rest() {
  if (rests_) return;
  rests_ = true;
  for (uint32_t slot = 0; slot < blocks_; ++slot) {
    if (is_free(slot)) {
      ways_->open(slot);
    } else {
      ways_->shut(slot);
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
    ways_->open(slot_of(block));
  } else {
    ways_->shut(slot_of(block));
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
  h.closed_ns = kit::wall_ns();
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
