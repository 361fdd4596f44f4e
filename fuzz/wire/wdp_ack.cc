// RDACK (spec/wdp-rd 4). Input: a datagram, tried as it is and, so that more than its CRC and its
// length is looked at, with as many SACK words as it has room for and with a CRC that is right.

#include "wire/wdp_ack.h"

#include "fuzz/support/check.h"
#include "wire/wdp_crc.h"

namespace {

using namespace weft;
using namespace weft::wire;

bool good(Bytes b) {
  if (b.size() < 36 || b[0] != std::byte{0xd1} || (b[1] >> 3) != std::byte{9}) return false;
  if (!wdp_crc_matches(b) || b[2] != std::byte{0} || b[3] != std::byte{0}) return false;
  const size_t words = load_be<uint16_t>(b.data() + 26);
  return words <= 32 && b.size() == 36 + 4 * words;
}

// Each bit of the bitmap, and hold() makes the same bitmap of what holds() says.
void check_bitmap(const WdpAck& a, Bytes bitmap) {
  WdpAck again = a;
  again.words = 0;
  again.sack = {};
  for (uint32_t i = 0; i < 1024; ++i) {
    const Csn csn = a.cum + (1 + i);
    const bool set =
        i / 8 < bitmap.size() && (std::to_integer<unsigned>(bitmap[i / 8]) << i % 8 & 0x80) != 0;
    FUZZ_CHECK(a.holds(csn) == set);
    if (set) FUZZ_CHECK(again.hold(csn) && again.holds(csn));
  }
  FUZZ_CHECK(again.words <= a.words && again.sack == a.sack);
  FUZZ_CHECK(!a.holds(a.cum) && !a.holds(a.cum + 1025) && !again.hold(a.cum + 1025));
}

void check_datagram(Bytes bytes) {
  const auto datagram = fuzz::exact(bytes, bytes.size());
  const auto a = WdpAck::parse(datagram);
  FUZZ_CHECK(a.ok() == good(datagram));
  if (!a.ok()) {
    FUZZ_CHECK(a.error() <= WdpDrop::length_mismatch || a.error() == WdpDrop::index_mismatch ||
               a.error() == WdpDrop::too_many_sack_words);
    return;
  }
  FUZZ_CHECK(!a->to_string().empty());
  auto expected = datagram;
  expected[1] = std::byte{0x48};
  seal_wdp(expected);
  std::vector<std::byte> again(a->size());
  FUZZ_CHECK(a->encode(again.data()) == again.size() && again.size() <= WdpAck::kMaxSize);
  FUZZ_CHECK(fuzz::same(again, expected));
  const auto twice = WdpAck::parse(again);
  FUZZ_CHECK(twice.ok() && *twice == *a);
  check_bitmap(*a, Bytes{datagram}.subspan(WdpAck::kSize));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const Bytes input = fuzz::as_bytes(data, size);
  check_datagram(input);
  if (size < WdpAck::kSize) return 0;
  auto fitted = fuzz::exact(input, size);
  fitted[1] |= std::byte{8};
  store_be(fitted.data() + 26, static_cast<uint16_t>((size - WdpAck::kSize) / 4));
  seal_wdp(fitted);
  check_datagram(fitted);
  return 0;
}
