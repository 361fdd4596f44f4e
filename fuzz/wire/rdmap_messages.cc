// RDMAP headers behind the untagged DDP header (spec/rdmap 1.5 to 1.7). Input: those bytes; every
// message that fits is tried.

#include "wire/rdmap_messages.h"

#include "fuzz/support/check.h"

namespace {

using namespace weft;
using namespace weft::wire;

// `adjust` clears in the input what the encoder sends as zero.
template <class Message, class Adjust>
void check_message(Bytes input, Adjust&& adjust) {
  if (input.size() < Message::kSize) return;
  auto expected = fuzz::exact(input, Message::kSize);
  const Message parsed = Message::parse(expected.data());
  adjust(expected.data());
  FUZZ_CHECK(fuzz::same(fuzz::fixpoint(parsed), expected));
  if constexpr (requires { parsed.to_string(); }) FUZZ_CHECK(!parsed.to_string().empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const Bytes input = fuzz::as_bytes(data, size);
  const auto nothing = [](std::byte*) {};
  check_message<ReadRequest>(input, nothing);
  check_message<AtomicResponse>(input, nothing);
  check_message<Immediate>(input, [](std::byte* p) { store_be<uint32_t>(p + 4, 0); });
  check_message<AtomicRequest>(
      input, [](std::byte* p) { store_be<uint32_t>(p, load_be<uint32_t>(p) & 0x0f); });
  return 0;
}
