// The UDP datagrams of a capture file: classic pcap, either byte order, of Ethernet (with VLAN
// tags), raw IP and Linux "cooked" links. IPv4 without fragments: a capture of fragments has to be
// put together by others first.
#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <vector>

#include "bench/failure.h"
#include "stream/source.h"

namespace weft::stream {
namespace {

constexpr uint32_t kMicro = 0xa1b2c3d4;
constexpr uint32_t kNano = 0xa1b23c4d;
constexpr size_t kFileHeader = 24;
constexpr size_t kRecordHeader = 16;
enum Link : uint32_t { kEthernet = 1, kRawIp = 101, kCooked = 113, kIpv4 = 228 };

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

struct Datagram {
  uint16_t port;
  ConstPacket payload;
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
    default:
      return true;
  }
}

std::optional<Datagram> datagram_of(Bytes b, uint32_t link) {
  constexpr uint8_t kUdp = 17;
  if (!enter_link(b, link) || b.size() < 20 || b.at(0) >> 4 != 4) return std::nullopt;
  const size_t header = size_t{4} * (b.at(0) & 15);
  const bool fragment = (b.big(6) & 0x3fff) != 0;
  if (b.at(9) != kUdp || fragment || !b.skip(header) || b.size() < 8) return std::nullopt;
  const uint16_t length = b.big(4);
  if (length < 8 || b.size() < length) return std::nullopt;
  return Datagram{.port = b.big(2), .payload = b.rest().subspan(8, length - 8U)};
}

class PcapSource final : public Source {
 public:
  PcapSource(const SourceOptions& options, const Shape& shape, uint32_t streams)
      : shape_(shape),
        loop_(options.loop),
        file_(options.pcap),
        queues_(streams),
        turns_(streams),
        ahead_(streams) {
    const Bytes start{file_.bytes()};
    if (start.size() < kFileHeader) throw bench::Failure{options.pcap + " is no pcap file"};
    const auto is_magic = [](uint32_t word) { return word == kMicro || word == kNano; };
    swapped_ = is_magic(start.word(0, true));
    if (!swapped_ && !is_magic(start.word(0, false))) {
      throw bench::Failure{options.pcap +
                           " is no classic pcap file (editcap -F pcap makes one of others)"};
    }
    link_ = start.word(20, swapped_);
    if (link_ != kEthernet && link_ != kRawIp && link_ != kCooked && link_ != kIpv4) {
      throw bench::Failure{options.pcap + ": its kind of link is not known"};
    }
    read_all();
    for (const auto& queue : queues_) {
      if (queue.empty()) {
        throw bench::Failure{options.pcap + " has packets of this shape for fewer streams"};
      }
      const auto [least, most] =
          std::minmax_element(queue.begin(), queue.end(), [&](ConstPacket a, ConstPacket b) {
            return *stream::number_of(shape_, a) < *stream::number_of(shape_, b);
          });
      const uint64_t span = *number_of(shape_, *most) - *number_of(shape_, *least) + 1;
      pass_ = std::max(pass_,
                       (span + shape.heap_packets - 1) / shape.heap_packets * shape.heap_packets);
    }
  }

  bool has_own_numbers() const override { return true; }
  std::optional<uint64_t> own_number(uint32_t stream) override {
    const auto& queue = queues_[stream];
    if (turns_[stream] == queue.size()) {
      if (!loop_) return std::nullopt;
      turns_[stream] = 0;
      ahead_[stream] += pass_;
    }
    return *number_of(shape_, queue[turns_[stream]]) + ahead_[stream];
  }
  bool fill(uint32_t stream, uint64_t, Packet packet) override {
    const ConstPacket from = queues_[stream][turns_[stream]++];
    std::copy(from.begin(), from.end(), packet.begin());
    if (ahead_[stream] != 0) advance(shape_, ahead_[stream], packet);
    return true;
  }
  uint64_t unusable() const override { return unusable_; }

 private:
  void read_all() {
    std::map<uint16_t, size_t> streams;  // by destination port
    Bytes b{file_.bytes()};
    b.skip(kFileHeader);
    while (b.size() >= kRecordHeader) {
      const uint32_t captured = b.word(8, swapped_);
      b.skip(kRecordHeader);
      if (b.size() < captured) return;  // the capture was cut off
      const auto datagram = datagram_of(Bytes{b.rest().first(captured)}, link_);
      b.skip(captured);
      if (!datagram || !number_of(shape_, datagram->payload)) {
        ++unusable_;
        continue;
      }
      const size_t stream = streams.try_emplace(datagram->port, streams.size()).first->second;
      if (stream < queues_.size()) {
        queues_[stream].push_back(datagram->payload);
      } else {
        ++unusable_;
      }
    }
  }

  const Shape shape_;
  const bool loop_;
  const MappedFile file_;
  bool swapped_ = false;
  uint32_t link_ = 0;
  std::vector<std::vector<ConstPacket>> queues_;
  std::vector<size_t> turns_;
  // Numbers go on when a file begins again: by those of the longest stream, so that all stay
  // together.
  uint64_t pass_ = 0;
  std::vector<uint64_t> ahead_;
  uint64_t unusable_ = 0;
};

}  // namespace

std::unique_ptr<Source> make_pcap_source(const SourceOptions& options, const Shape& shape,
                                         uint32_t streams) {
  return std::make_unique<PcapSource>(options, shape, streams);
}

}  // namespace weft::stream
