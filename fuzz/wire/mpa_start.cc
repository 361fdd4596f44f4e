// MPA start-up frames (spec/mpa 2.1, 2.2). Input: a frame, and what follows it.

#include "wire/mpa_start.h"

#include <cstring>

#include "fuzz/support/check.h"

namespace {

using namespace weft;
using wire::MpaEnhanced;
using wire::MpaStart;

void check_frame(MpaStart::Kind kind, Bytes input) {
  const auto frame = fuzz::exact(input, MpaStart::kSize);
  const auto parsed = MpaStart::parse(kind, frame.data());
  const bool request = kind == MpaStart::Kind::request;
  const bool good_key =
      std::memcmp(frame.data(), request ? "MPA ID Req Frame" : "MPA ID Rep Frame", 16) == 0;
  const auto revision = std::to_integer<unsigned>(frame[17]);
  const bool good_revision = revision == 1 || revision == 2;
  const bool good_length = load_be<uint16_t>(frame.data() + 18) <= 512;
  FUZZ_CHECK(parsed.ok() == (good_key && good_revision && good_length));
  if (!parsed.ok()) {
    using Error = MpaStart::Error;
    FUZZ_CHECK((parsed.error() == Error::bad_key) == !good_key);
    FUZZ_CHECK(parsed.error() != Error::bad_revision || !good_revision);
    FUZZ_CHECK(parsed.error() != Error::private_data_too_long || !good_length);
    FUZZ_CHECK(std::strlen(to_string(parsed.error())) > 1);
    return;
  }
  FUZZ_CHECK(!(request && (parsed->rejected || parsed->extension_accepted)));
  FUZZ_CHECK(!(parsed->enhanced && parsed->revision != 2));
  FUZZ_CHECK(!parsed->to_string().empty());

  // All but the bits that have no meaning in this kind of frame.
  auto expected = frame;
  if (request) expected[16] &= std::byte{0xdf};
  if (revision == 1) expected[16] &= std::byte{0xef};
  // Offers go with the enhanced block and the extension, UR and EL with the latter alone
  // (spec/same-host 2.1, spec/wdp-rd 7.1, spec/mpa 2.9).
  if (request) {
    if ((expected[16] & std::byte{0x01}) == std::byte{}) expected[16] &= std::byte{0xf5};
  } else if ((expected[16] & std::byte{0x12}) != std::byte{0x12}) {
    expected[16] &= std::byte{0xf3};
  }
  std::vector<std::byte> again(MpaStart::kSize);
  parsed->encode(again.data());
  FUZZ_CHECK(fuzz::same(again, expected));

  const Bytes rest = input.subspan(MpaStart::kSize);
  if (parsed->enhanced && rest.size() >= MpaEnhanced::kSize) {
    const auto block = fuzz::exact(rest, MpaEnhanced::kSize);
    const MpaEnhanced e = MpaEnhanced::parse(block.data());
    FUZZ_CHECK(fuzz::same(fuzz::fixpoint(e), block));
    FUZZ_CHECK(!e.to_string().empty());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const Bytes input = fuzz::as_bytes(data, size);
  if (input.size() < MpaStart::kSize) return 0;
  check_frame(MpaStart::Kind::request, input);
  check_frame(MpaStart::Kind::reply, input);
  return 0;
}
