#include "stream/pcap_file.h"

#include <cstring>

namespace weft::stream {
namespace {

constexpr uint32_t kMicro = 0xa1b2c3d4;
constexpr uint32_t kNano = 0xa1b23c4d;
constexpr size_t kFileHeader = 24;
constexpr size_t kRecordHeader = 16;
enum Link : uint32_t { kEthernet = 1, kRawIp = 101, kCooked = 113, kIpv4 = 228, kCooked2 = 276 };

class Bytes {
 public:
  explicit Bytes(ConstPacket bytes) : bytes_(bytes) {}
  bool skip(size_t n) {
    if (bytes_.size() < n) return false;
    bytes_ = bytes_.subspan(n);
    return true;
  }
  size_t size() const { return bytes_.size(); }
  ConstPacket rest() const { return bytes_; }
  uint8_t at(size_t i) const { return static_cast<uint8_t>(bytes_[i]); }
  uint16_t big(size_t i) const { return static_cast<uint16_t>(at(i) << 8 | at(i + 1)); }
  uint32_t word(size_t i, bool swapped) const {
    uint32_t value = 0;
    std::memcpy(&value, bytes_.data() + i, sizeof value);
    return swapped ? __builtin_bswap32(value) : value;
  }

 private:
  ConstPacket bytes_;
};

// Takes the link's header off; false when what follows is no IPv4.
bool enter_link(Bytes& b, uint32_t link) {
  constexpr uint16_t kTypeIpv4 = 0x0800;
  constexpr uint16_t kTypeVlan = 0x8100;
  constexpr uint16_t kTypeOuterVlan = 0x88a8;
  switch (link) {
    case kEthernet: {
      size_t type = 12;
      while (b.size() >= type + 2 && (b.big(type) == kTypeVlan || b.big(type) == kTypeOuterVlan)) {
        type += 4;
      }
      return b.size() >= type + 2 && b.big(type) == kTypeIpv4 && b.skip(type + 2);
    }
    case kCooked:
      return b.size() >= 16 && b.big(14) == kTypeIpv4 && b.skip(16);
    case kCooked2:  // what tcpdump writes of all interfaces at once
      return b.size() >= 20 && b.big(0) == kTypeIpv4 && b.skip(20);
    default:
      return true;
  }
}

std::optional<UdpDatagram> datagram_of(Bytes b, uint32_t link) {
  constexpr uint8_t kUdp = 17;
  if (!enter_link(b, link) || b.size() < 20 || b.at(0) >> 4 != 4) return std::nullopt;
  const size_t header = size_t{4} * (b.at(0) & 15);
  const bool fragment = (b.big(6) & 0x3fff) != 0;
  if (header < 20 || b.at(9) != kUdp || fragment || !b.skip(header) || b.size() < 8) {
    return std::nullopt;
  }
  const uint16_t length = b.big(4);
  if (length < 8 || b.size() < length) return std::nullopt;
  return UdpDatagram{.port = b.big(2), .payload = b.rest().subspan(8, length - 8U)};
}

}  // namespace

Result<PcapFile, std::string> PcapFile::open(ConstPacket bytes) {
  Bytes start{bytes};
  if (start.size() < kFileHeader) return fail(std::string{" is no pcap file"});
  const auto is_magic = [](uint32_t word) { return word == kMicro || word == kNano; };
  const bool swapped = is_magic(start.word(0, true));
  if (!swapped && !is_magic(start.word(0, false))) {
    return fail(std::string{" is no classic pcap file (editcap -F pcap makes one of others)"});
  }
  const uint32_t link = start.word(20, swapped);
  if (link != kEthernet && link != kRawIp && link != kCooked && link != kIpv4 && link != kCooked2) {
    return fail(": its kind of link, " + std::to_string(link) +
                ", is not known; capture on an Ethernet interface");
  }
  const bool nano = start.word(0, swapped) == kNano;
  start.skip(kFileHeader);
  return PcapFile{start.rest(), link, swapped, nano};
}

std::optional<PcapFile::Record> PcapFile::next() {
  Bytes b{rest_};
  if (b.size() < kRecordHeader) return std::nullopt;
  const int64_t time_ns = int64_t{b.word(0, swapped_)} * 1'000'000'000 +
                          int64_t{b.word(4, swapped_)} * (nano_ ? 1 : 1000);
  const uint32_t captured = b.word(8, swapped_);
  b.skip(kRecordHeader);
  if (b.size() < captured) return std::nullopt;
  const ConstPacket frame = b.rest().first(captured);
  b.skip(captured);
  rest_ = b.rest();
  return Record{.time_ns = time_ns, .datagram = datagram_of(Bytes{frame}, link_)};
}

}  // namespace weft::stream
