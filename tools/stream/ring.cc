#include "stream/ring.h"

#include <sys/stat.h>
#include <unistd.h>

#include <iterator>

#include "base/wall_clock.h"
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

uint64_t RingSpec::block_bytes() const {
  return whole_pages(uint64_t{packets_per_block} * slot_bytes);
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
  const uint64_t bytes = spec.block_bytes();
  h.block_bytes = spec.apart && blocks_of(spec) <= kMostApart ? Landing::step_of(bytes) : bytes;
  h.size = h.data_offset + h.block_bytes * blocks_of(spec);
  h.session = static_cast<uint64_t>(wall_clock_ns());

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

}  // namespace weft::stream
