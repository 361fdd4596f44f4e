// Data headers of WDP, UC and RD, with the payloads that have a form (spec/wdp-uc 2.1, spec/wdp-uc
// 5, spec/wdp-rd 6). Input: a datagram. It is tried as it is and, so that headers get past the
// check of the length, with as many bytes behind the header as that says.

#include "wire/wdp_data.h"

#include "fuzz/support/check.h"
#include "wire/wdp_messages.h"

namespace {

using namespace weft;
using namespace weft::wire;

struct Raw {
  unsigned op, ddp, rdmap;
  uint32_t mo, mlen, stride;
};
Raw raw(const std::byte* p) {
  return {.op = std::to_integer<unsigned>(p[29]) & 15,
          .ddp = std::to_integer<unsigned>(p[28]),
          .rdmap = std::to_integer<unsigned>(p[29]),
          .mo = load_be<uint32_t>(p + 20),
          .mlen = load_be<uint32_t>(p + 24),
          .stride = load_be<uint16_t>(p + 30)};
}

// The hard checks, said another way: what a datagram has to be like.
bool good(Bytes b) {
  if (b.size() < 48 || b[0] != std::byte{0xd1}) return false;
  const auto second = std::to_integer<unsigned>(b[1]) >> 4;
  const Raw r = raw(b.data());
  const bool rd = second == 3;
  if (second != 1 && !rd) return false;
  if ((r.ddp & 3) != 1 || r.rdmap >> 6 != 1 || r.stride > 65456) return false;
  const unsigned opcodes = rd ? 0b0000'1100'1111'1111U : 0b0000'0000'0111'1111U;
  if ((opcodes >> r.op & 1) == 0) return false;
  if ((r.ddp >> 7) != (r.op == 0 || r.op == 2 ? 1U : 0U)) return false;
  const bool last = (r.ddp & 0x40) != 0;
  if (r.op == 1) {
    if (b.size() != 56 || !last) return false;
    const uint64_t length = load_be<uint32_t>(b.data() + 48);
    return r.mo + length <= r.mlen && (length > 0 || r.mlen == 0);
  }
  // END: a header, of queue pairs at both ends.
  if (r.op == 7 && b[2] != std::byte{0} && b[3] != std::byte{0}) {
    return b.size() == 48 && last && r.stride != 0 && r.mo % r.stride == 0 && r.mlen == 0;
  }
  if (r.stride == 0) return false;
  const uint64_t segments = r.mlen == 0 ? 1 : (uint64_t{r.mlen} + r.stride - 1) / r.stride;
  const uint64_t index = r.mo / r.stride;
  if (index * r.stride != r.mo || index >= segments) return false;
  const uint64_t end = index + 1 == segments ? r.mlen : (index + 1) * r.stride;
  if (last != (index + 1 == segments) || b.size() != 48 + (end - r.mo)) return false;
  if (r.op == 7) {
    return b[2] == std::byte{0} && b[3] == std::byte{0} && segments == 1 && r.mlen % 12 == 0;
  }
  if (r.op == 10) return segments == 1 && r.mlen == 52;
  if (r.op == 11) return segments == 1 && r.mlen == 12;
  return true;
}

void check_payload(const WdpData& d, Bytes payload) {
  FUZZ_CHECK(payload.size() == d.payload_size());
  if (d.opcode == Opcode::read_request) {
    const auto range = WdpReadRange::parse(payload.data());
    FUZZ_CHECK(fuzz::same(fuzz::fixpoint(range), payload));
    FUZZ_CHECK(!range.to_string().empty());
  }
  if (d.opcode != Opcode::terminate) return;
  for (; !payload.empty(); payload = payload.subspan(WdpResponse::kSize)) {
    const auto record = fuzz::exact(payload, WdpResponse::kSize);
    const auto parsed = WdpResponse::parse(record.data());
    FUZZ_CHECK(fuzz::same(fuzz::fixpoint(parsed), record));
    FUZZ_CHECK(parsed.delay_us() <= 655'360 && !parsed.to_string().empty());
  }
}

void check_datagram(Bytes bytes) {
  const auto datagram = fuzz::exact(bytes, bytes.size());
  const auto d = WdpData::parse(datagram);
  FUZZ_CHECK(d.ok() == good(datagram));
  if (!d.ok()) {
    FUZZ_CHECK(d.error() <= WdpDrop::index_mismatch);
    return;
  }
  FUZZ_CHECK(!d->to_string().empty());
  FUZZ_CHECK(wdp_has_opcode(d->wdp_class, d->opcode));
  FUZZ_CHECK(d->segment_index() < d->segment_count());
  if (d->opcode != Opcode::read_request && !d->is_end()) {
    FUZZ_CHECK(d->last == (d->segment_index() + 1 == d->segment_count()));
  }
  FUZZ_CHECK(!(d->solicited() && d->opcode == Opcode::write && !d->has_immediate()));
  check_payload(*d, Bytes{datagram}.subspan(WdpData::kSize));

  // All but reserved bits and the CRC, which is the caller's.
  auto expected = datagram;
  store_be<uint32_t>(expected.data() + 12, 0);
  expected[28] &= d->wdp_class == WdpClass::rd ? std::byte{0xfb} : std::byte{0xf3};
  expected[29] &= std::byte{0xcf};
  auto again = datagram;
  d->encode(again.data());
  FUZZ_CHECK(fuzz::same(again, expected));
  const auto twice = WdpData::parse(again);
  FUZZ_CHECK(twice.ok() && *twice == *d);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const Bytes input = fuzz::as_bytes(data, size);
  check_datagram(input);
  if (size < WdpData::kSize) return 0;
  const Raw r = raw(input.data());
  const bool is_end = r.op == 7 && input[2] != std::byte{0};
  const size_t n = r.op == 1 ? 8 : is_end ? 0 : std::min(r.stride, r.mlen - std::min(r.mo, r.mlen));
  if (n > 4096) return 0;
  auto fitted = fuzz::exact(input, size);
  fitted.resize(WdpData::kSize + n);
  check_datagram(fitted);
  return 0;
}
