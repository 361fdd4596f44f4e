// WFRC blocks (spec/addressing 5.1). Input: MPA private data.

#include "wire/wfrc.h"

#include "fuzz/support/check.h"

namespace {

using namespace weft;
using wire::Wfrc;

std::vector<std::byte> encoded(const Wfrc& w) {
  std::vector<std::byte> b(Wfrc::kSize);
  w.encode(b.data());
  return b;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto input = fuzz::exact(fuzz::as_bytes(data, size), size);
  const auto w = Wfrc::parse(input);
  FUZZ_CHECK(w.has_value() == (size >= Wfrc::kSize && std::memcmp(data, "WFRC", 4) == 0));
  if (!w) return 0;
  FUZZ_CHECK(!w->to_string().empty());
  FUZZ_CHECK(w->source_qpn.value() <= 0xffffff && w->destination_qpn.value() <= 0xffffff);

  auto expected = fuzz::exact(input, Wfrc::kSize);
  expected[5] &= std::byte{0x01};
  expected[8] = expected[12] = std::byte{0};
  const auto once = encoded(*w);
  FUZZ_CHECK(fuzz::same(once, expected));
  const auto again = Wfrc::parse(once);
  FUZZ_CHECK(again.has_value() && fuzz::same(encoded(*again), once));
  return 0;
}
