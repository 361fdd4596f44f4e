// UD headers of WDP (spec/wdp-ud 2). Input: a datagram, tried as it is and with its true length in
// it.

#include "wire/wdp_ud.h"

#include "fuzz/support/check.h"

namespace {

using namespace weft;
using namespace weft::wire;

bool good(Bytes b) {
  if (b.size() < 32 || b[0] != std::byte{0xd1} || (b[1] >> 4) != std::byte{2}) return false;
  const auto ddp = b[24] & std::byte{0xc3};
  const auto rdmap = b[25] & std::byte{0xcf};
  return ddp == std::byte{0x41} && (rdmap == std::byte{0x43} || rdmap == std::byte{0x45}) &&
         b.size() == size_t{32} + load_be<uint16_t>(b.data() + 26) && b[2] == b[19];
}

void check_datagram(Bytes bytes) {
  const auto datagram = fuzz::exact(bytes, bytes.size());
  const auto u = WdpUd::parse(datagram);
  FUZZ_CHECK(u.ok() == good(datagram));
  if (!u.ok()) {
    FUZZ_CHECK(u.error() <= WdpDrop::index_mismatch);
    return;
  }
  FUZZ_CHECK(!u->to_string().empty());
  FUZZ_CHECK(u->source.value() <= 0xffffff && u->destination.value() <= 0xffffff);
  FUZZ_CHECK(u->multicast() == (u->destination.value() == 0xffffff));

  // All but reserved bits, flags of other classes, the CRC; sidx becomes the source's index.
  auto expected = datagram;
  expected[1] &= std::byte{0xfc};
  expected[3] = expected[11];
  expected[8] = expected[16] = std::byte{0};
  store_be<uint32_t>(expected.data() + 12, 0);
  expected[24] &= std::byte{0xc3};
  expected[25] &= std::byte{0xcf};
  auto again = datagram;
  u->encode(again.data());
  FUZZ_CHECK(fuzz::same(again, expected));
  const auto twice = WdpUd::parse(again);
  FUZZ_CHECK(twice.ok() && *twice == *u);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const Bytes input = fuzz::as_bytes(data, size);
  check_datagram(input);
  if (size < WdpUd::kSize) return 0;
  auto fitted = fuzz::exact(input, size);
  store_be(fitted.data() + 26, static_cast<uint16_t>(size - WdpUd::kSize));
  check_datagram(fitted);
  return 0;
}
