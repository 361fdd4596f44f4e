#include "trace/pcapng.h"

namespace weft::trace {
namespace {

// Section numbers of the draft. Every number stands in the writer's byte order.
constexpr uint32_t kSectionHeader = 0x0a0d0d0a;   // 4.1
constexpr uint32_t kByteOrderMagic = 0x1a2b3c4d;  // 4.1
constexpr uint32_t kInterfaceDescription = 1;     // 4.2
constexpr uint32_t kEnhancedPacket = 6;           // 4.3
constexpr uint16_t kRawIp = 101;                  // LINKTYPE_RAW: IPv4 or IPv6
constexpr uint32_t kSnapLength = Headers::kMost + kMostPayload;
enum Option : uint16_t {  // 3.5
  kEnd = 0,
  kComment = 1,
  kUserApplication = 4,  // of a section
  kName = 2,             // of an interface
  kResolution = 9,
  kFlags = 2,  // of a packet
};
constexpr uint8_t kNanoseconds = 9;  // digits behind the point
constexpr uint32_t kInbound = 1;
constexpr uint32_t kOutbound = 2;

constexpr size_t pad(size_t n) {
  return (0U - n) & 3U;
}

// A block as it grows.
class Block {
 public:
  explicit Block(uint32_t type) {
    put(type);
    put(uint32_t{0});  // the length, when it is known
  }
  template <class T>
  void put(T v) {
    const auto* p = reinterpret_cast<const std::byte*>(&v);
    bytes_.insert(bytes_.end(), p, p + sizeof v);
  }
  void option(uint16_t code, std::string_view value) {
    put(code);
    put(static_cast<uint16_t>(value.size()));
    const auto* p = reinterpret_cast<const std::byte*>(value.data());
    bytes_.insert(bytes_.end(), p, p + value.size());
    bytes_.resize(bytes_.size() + pad(value.size()));
  }
  std::vector<std::byte> finished() {
    put(uint16_t{kEnd});
    put(uint16_t{0});
    const auto length = static_cast<uint32_t>(bytes_.size() + sizeof(uint32_t));
    std::memcpy(bytes_.data() + 4, &length, sizeof length);
    put(length);
    return std::move(bytes_);
  }

 private:
  std::vector<std::byte> bytes_;
};

template <class T>
size_t store(std::byte* at, T v) {
  std::memcpy(at, &v, sizeof v);
  return sizeof v;
}

}  // namespace

std::vector<std::byte> file_head(std::string_view comment) {
  Block section{kSectionHeader};
  section.put(kByteOrderMagic);
  section.put(uint16_t{1});  // version 1.0
  section.put(uint16_t{0});
  section.put(int64_t{-1});  // the section's length: to the end of the file
  section.option(kUserApplication, "weft");
  section.option(kComment, comment.substr(0, 1000));
  std::vector<std::byte> head = section.finished();

  Block interface { kInterfaceDescription };
  interface.put(kRawIp);
  interface.put(uint16_t{0});
  interface.put(kSnapLength);
  interface.option(kName, "weft0");
  interface.option(kResolution, std::string_view(reinterpret_cast<const char*>(&kNanoseconds), 1));
  const std::vector<std::byte> second = interface.finished();
  head.insert(head.end(), second.begin(), second.end());
  return head;
}

BlockEnds::BlockEnds(const Packet& packet) {
  const size_t kept = packet.headers.size() + packet.kept;
  const size_t padding = pad(kept);
  back_size_ = padding + 8 + 4 + 4;
  block_size_ = kFront + kept + back_size_;
  const auto length = static_cast<uint32_t>(block_size_);

  std::byte* f = front_.data();
  f += store(f, kEnhancedPacket);
  f += store(f, length);
  f += store(f, uint32_t{0});  // the interface
  const auto at = static_cast<uint64_t>(packet.at);
  f += store(f, static_cast<uint32_t>(at >> 32));
  f += store(f, static_cast<uint32_t>(at));
  f += store(f, static_cast<uint32_t>(kept));
  store(f, static_cast<uint32_t>(packet.headers.size() + packet.size));

  std::byte* b = back_.data() + padding;
  b += store(b, uint16_t{kFlags});
  b += store(b, uint16_t{4});
  b += store(b, packet.direction == Direction::out ? kOutbound : kInbound);
  b += store(b, uint32_t{kEnd});
  store(b, length);
}

}  // namespace weft::trace
