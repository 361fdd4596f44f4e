// Capture files of other programs (tools/stream/pcap_file.h). Input: a file.

#include "stream/pcap_file.h"

#include "fuzz/support/check.h"

namespace {

using namespace weft;
using stream::PcapFile;
using stream::UdpDatagram;

std::vector<std::optional<UdpDatagram>> records_of(Bytes file) {
  std::vector<std::optional<UdpDatagram>> all;
  auto capture = PcapFile::open(file);
  if (!capture.ok()) {
    FUZZ_CHECK(!capture.error().empty());
    return all;
  }
  while (const auto record = capture->next()) all.push_back(record->datagram);
  FUZZ_CHECK(!capture->next());
  return all;
}

// As a machine of the other byte order would have written it.
std::vector<std::byte> other_order(Bytes file) {
  auto other = fuzz::exact(file, file.size());
  const auto turn = [&](size_t at) {
    std::reverse(other.begin() + static_cast<ptrdiff_t>(at),
                 other.begin() + static_cast<ptrdiff_t>(at) + 4);
  };
  const bool native = file[0] == std::byte{0xd4} || file[0] == std::byte{0x4d};
  turn(0);
  turn(20);
  for (size_t at = 24; at + 16 <= file.size();) {
    uint32_t captured = 0;
    std::memcpy(&captured, file.data() + at + 8, 4);
    if (!native) captured = __builtin_bswap32(captured);
    turn(at + 8);
    if (captured > file.size() - at - 16) break;
    at += 16 + captured;
  }
  return other;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto file = fuzz::exact(fuzz::as_bytes(data, size), size);
  const auto records = records_of(file);
  FUZZ_CHECK(records.size() <= size / 16);
  for (const auto& datagram : records) {
    if (!datagram) continue;
    FUZZ_CHECK(datagram->payload.data() >= file.data() + 24 + 16 + 28);
    FUZZ_CHECK(datagram->payload.data() + datagram->payload.size() <= file.data() + size);
  }
  if (!PcapFile::open(file).ok()) return 0;
  const auto other = other_order(file);
  const auto again = records_of(other);
  FUZZ_CHECK(again.size() == records.size());
  for (size_t i = 0; i < again.size(); ++i) {
    FUZZ_CHECK(again[i].has_value() == records[i].has_value());
    if (!again[i]) continue;
    FUZZ_CHECK(again[i]->port == records[i]->port);
    FUZZ_CHECK(fuzz::same(again[i]->payload, records[i]->payload));
  }
  return 0;
}
