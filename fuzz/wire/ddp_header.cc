// DDP segment headers (spec/rdmap 1.1 to 1.4). Input: a ULPDU.

#include "wire/ddp_header.h"

#include "fuzz/support/check.h"

namespace {

using namespace weft;
using namespace weft::wire;

template <class Header>
void check_header(Bytes ulpdu) {
  if (ulpdu.size() < Header::kSize) return;
  const auto header = fuzz::exact(ulpdu, Header::kSize);
  const Header parsed = Header::parse(header.data());
  auto expected = header;
  expected[0] &= std::byte{0xc3};
  expected[1] &= std::byte{0xdf};
  FUZZ_CHECK(fuzz::same(fuzz::fixpoint(parsed), expected));
  FUZZ_CHECK(!parsed.to_string().empty());
}

void check_opcode(Opcode op) {
  FUZZ_CHECK(static_cast<unsigned>(op) < 16);
  FUZZ_CHECK(!(is_send(op) && (is_tagged(op) || is_immediate(op))));
  FUZZ_CHECK(!invalidates(op) || is_send(op));
  FUZZ_CHECK(!send_carries_immediate(op) || (is_send(op) && needs_extension(op)));
  FUZZ_CHECK(!is_solicited(op) || is_send(op) || is_immediate(op));
  FUZZ_CHECK(min_ulpdu(op) >= ddp_header_size(is_tagged(op)));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const Bytes ulpdu = fuzz::as_bytes(data, size);
  if (ulpdu.size() < Control::kSize) return 0;
  const auto first = fuzz::exact(ulpdu, Control::kSize);
  const Control control = Control::parse(first.data());
  check_opcode(control.opcode);
  if (control.tagged) {
    check_header<TaggedHeader>(ulpdu);
  } else {
    check_header<UntaggedHeader>(ulpdu);
  }
  return 0;
}
