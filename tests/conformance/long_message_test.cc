// RFC 5041 section 5.2: no message is longer than 2^32 - 1 bytes, also where there is room for it.

#include <functional>

#include "tests/conformance/peer.h"

namespace weft::conformance {
namespace {

using wire::Refusal;

constexpr uint32_t kPayload = 65'000;

// One message, of segments that the kernel puts into their places: nobody copies these 4 GB, and
// the memory is not there. `header`: of the segment that begins there. How much was taken.
uint64_t say_without_end(Peer& p, const std::function<Buffer(uint64_t at)>& header) {
  uint64_t taken = 0;
  while (taken < uint64_t{5} << 30) {
    const Buffer h = header(taken);
    Buffer start(wire::kFpduLengthSize);
    store_be(start.data(), static_cast<uint16_t>(h.size() + kPayload));
    start.insert(start.end(), h.begin(), h.end());
    p.hears_bytes(start);
    if (p.host.end) break;
    PieceList places;
    if (!p.stream.direct() || !p.stream.direct_places(places, p.now)) break;
    p.stream.direct_received(places.bytes(), p.now);
    taken += kPayload;
  }
  return taken;
}

class LongMessage : public ::testing::Test {
 protected:
  LongMessage() {
    room = p.host.add_region(nothing, 15, 0);
    p.host.regions[room].length = uint64_t{6} << 30;
  }
  void expect_refused(uint64_t taken, wire::TermError error) {
    EXPECT_EQ(taken, UINT32_MAX / kPayload * kPayload);
    ASSERT_TRUE(p.host.end);
    EXPECT_EQ(p.host.end->error.to_string(), error.to_string());
    p.says();
    expect_counted(p, error);
    const auto& refused = p.engine_counters.counters.refused;
    EXPECT_EQ(refused[static_cast<size_t>(Refusal::message_too_long)].value(), 1U);
  }
  Peer p{true, 4, false};  // without CRC: that would be over all of it
  Buffer nothing = Buffer(1);
  Stag room;
};

TEST_F(LongMessage, AWriteIsRefused) {
  const uint64_t taken = say_without_end(
      p, [&](uint64_t at) { return tagged({.stag = room, .to = at, .last = false}); });
  expect_refused(taken, term::kTaggedBounds);
}

TEST_F(LongMessage, ASendIsRefusedThoughItsReceiveIsLonger) {
  p.host.receives.clear();
  p.host.post_receive(2, {{0, UINT32_MAX, room}, {0, UINT32_MAX, room}});
  const uint64_t taken = say_without_end(
      p, [](uint64_t at) { return untagged({.mo = static_cast<uint32_t>(at), .last = false}); });
  expect_refused(taken, term::kUntaggedTooLong);
}

}  // namespace
}  // namespace weft::conformance
