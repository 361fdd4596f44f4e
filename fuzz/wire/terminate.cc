// Terminate in both layouts (spec/errors 1.1, 1.2). Input: what follows the untagged DDP header.

#include "wire/terminate.h"

#include <algorithm>

#include "fuzz/support/check.h"

namespace {

using namespace weft;
using wire::Terminate;

std::vector<std::byte> encoded(const Terminate& t) {
  std::vector<std::byte> b(Terminate::kMaxSize);
  const size_t n = t.encode(b.data());
  FUZZ_CHECK(n >= 4 && n <= b.size());
  b.resize(n);
  return b;
}

std::vector<std::byte> check_parse(Bytes payload, bool extension, bool started) {
  const auto exact = fuzz::exact(payload, payload.size());
  const Terminate t = Terminate::parse(exact, extension, started);
  FUZZ_CHECK(static_cast<unsigned>(t.error.layer) <= 2 && t.error.etype <= 15);
  FUZZ_CHECK(t.ddp_header_size == 0 || t.ddp_header_size == 14 || t.ddp_header_size == 18);
  FUZZ_CHECK(t.rdmap_header_size == 0 || t.rdmap_header_size == 28 || t.rdmap_header_size == 52);
  FUZZ_CHECK(!t.to_string().empty());
  const auto once = encoded(t);
  const Terminate again = Terminate::parse(once, true, started);
  FUZZ_CHECK(again.error == t.error);
  FUZZ_CHECK(again.ddp_header_size == t.ddp_header_size);
  FUZZ_CHECK(fuzz::same(encoded(again), once));
  // Nothing comes from anywhere but the input: the headers stand in it one behind the other.
  FUZZ_CHECK(once.size() <= std::max<size_t>(payload.size(), 4));
  if (once.size() > 6)
    FUZZ_CHECK(fuzz::same(Bytes{once}.subspan(6), payload.subspan(6, once.size() - 6)));
  return once;
}

// The same Terminate as siw lays it out: nibbles swapped, header bits in reverse order.
std::vector<std::byte> as_siw(Bytes rfc) {
  auto siw = fuzz::exact(rfc, rfc.size());
  const auto first = std::to_integer<unsigned>(rfc[0]);
  const auto control = std::to_integer<unsigned>(rfc[2]);
  siw[0] = static_cast<std::byte>((first << 4 | first >> 4) & 0xff);
  siw[2] = static_cast<std::byte>((control >> 7 & 1) | (control >> 5 & 2) | (control >> 3 & 4));
  return siw;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const Bytes payload = fuzz::as_bytes(data, size);
  for (const bool started : {false, true}) {
    check_parse(payload, false, started);
    const auto rfc = check_parse(payload, true, started);
    if (payload.size() < 4) continue;
    const auto control = std::to_integer<unsigned>(payload[2]);
    if ((control & 0xe0) != 0 && (control & 0x07) == 0) {
      FUZZ_CHECK(fuzz::same(check_parse(payload, false, started), rfc));
      FUZZ_CHECK(fuzz::same(check_parse(as_siw(payload), false, started), rfc));
    }
  }
  return 0;
}
