// Rings where the system's pages are larger than the structs that consumers see.
#include <weft/stream_ring.h>

#include <cstring>

#include "tests/support/large_pages.h"
#include "tests/unit/stream/ring_under_test.h"

namespace weft::stream {
namespace {

// The number of the first wrong statement, or 0.
int first_wrong() {
  const std::string name = own_name("pages");
  RingSpec spec = spec_of(name, true);
  Ring ring{spec};
  const weft_stream_ring& h = ring.header();
  if (h.data_offset % test::kLargePage != 0 || h.block_bytes % test::kLargePage != 0) return 1;
  weft_stream_ring* seen = weft_stream_open(name.c_str());
  if (seen == nullptr) return 2;
  // One block after the other is led to where consumers see it, into each stream.
  for (uint32_t s = 0; s < spec.streams; ++s) {
    BlockStore& store = ring.stream(s);
    for (uint64_t block = 0; block < spec.blocks; ++block) {
      store.lead(block);
      if (!store.is_led_here(block)) return 3;
      std::memset(store.place(block * spec.packets_per_block), static_cast<int>(16 * s + block + 1),
                  spec.packets_per_block * spec.slot_bytes);
    }
  }
  const auto* data = reinterpret_cast<const unsigned char*>(seen) + seen->data_offset;
  for (uint32_t s = 0; s < spec.streams; ++s) {
    for (uint64_t block = 0; block < spec.blocks; ++block) {
      const unsigned char* at = data + (s * spec.blocks + block) * seen->block_bytes;
      if (at[0] != 16 * s + block + 1 || at[7 * spec.slot_bytes] != at[0]) return 4;
    }
  }
  weft_stream_close(seen);
  return 0;
}

TEST(Ring, PagesOf64KiB) {
  test::expect_with_large_pages(first_wrong);
}

}  // namespace
}  // namespace weft::stream
