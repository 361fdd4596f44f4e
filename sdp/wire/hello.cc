#include "sdp/wire/hello.h"

#include <algorithm>

namespace weft::sdp {
namespace {

constexpr uint8_t kOldestMajor = 1;

bool speaks(uint8_t major) {
  return major >= kOldestMajor && major <= kMajorVersion;
}

std::byte nibbles(uint8_t high, uint8_t low) {
  return static_cast<std::byte>((high << 4) | (low & 0xf));
}
uint8_t high(std::byte b) {
  return static_cast<uint8_t>(b) >> 4;
}
uint8_t low(std::byte b) {
  return static_cast<uint8_t>(b) & 0xf;
}

std::optional<Bsdh> opening(Bytes data, MessageId mid, uint32_t size) {
  if (data.size() < size) return std::nullopt;
  const auto header = Bsdh::parse(data.data());
  if (!header || header->mid != mid || header->length != size) return std::nullopt;
  return header;
}

}  // namespace

std::optional<Hello> Hello::parse(Bytes private_data) {
  const auto header = opening(private_data, MessageId::hello, kSize);
  if (!header) return std::nullopt;
  const std::byte* p = private_data.data() + Bsdh::kSize;
  Hello h{.version_major = high(p[0]),
          .version_minor = low(p[0]),
          .ip_version = high(p[1]),
          .capabilities = low(p[1]),
          .max_adverts = static_cast<uint8_t>(p[3]),
          .bufs = header->bufs,
          .desired_receive = load_be<uint32_t>(p + 4),
          .receive_size = load_be<uint32_t>(p + 8),
          .port = load_be<uint16_t>(p + 12)};
  std::copy_n(p + 16, h.source.size(), h.source.begin());
  std::copy_n(p + 32, h.destination.size(), h.destination.begin());
  const bool usable = speaks(h.version_major) && (h.ip_version == 4 || h.ip_version == 6) &&
                      h.max_adverts > 0 && h.bufs >= kFewestBufs &&
                      h.receive_size >= kSmallestReceive;
  return usable ? std::optional{h} : std::nullopt;
}

void Hello::encode(std::byte* p) const {
  std::fill_n(p, kSize, std::byte{0});
  Bsdh{.mid = MessageId::hello, .bufs = bufs, .length = kSize}.encode(p);
  p += Bsdh::kSize;
  p[0] = nibbles(version_major, version_minor);
  p[1] = nibbles(ip_version, capabilities);
  p[3] = static_cast<std::byte>(max_adverts);
  store_be(p + 4, desired_receive);
  store_be(p + 8, receive_size);
  store_be(p + 12, port);
  std::copy(source.begin(), source.end(), p + 16);
  std::copy(destination.begin(), destination.end(), p + 32);
}

std::optional<HelloAck> HelloAck::parse(Bytes private_data) {
  const auto header = opening(private_data, MessageId::hello_ack, kSize);
  if (!header) return std::nullopt;
  const std::byte* p = private_data.data() + Bsdh::kSize;
  const HelloAck h{.version_major = high(p[0]),
                   .version_minor = low(p[0]),
                   .capabilities = static_cast<uint8_t>(p[1]),
                   .max_adverts = static_cast<uint8_t>(p[3]),
                   .bufs = header->bufs,
                   .receive_size = load_be<uint32_t>(p + 4)};
  const bool usable = speaks(h.version_major) && h.max_adverts > 0 && h.bufs >= kFewestBufs &&
                      h.receive_size >= kSmallestReceive;
  return usable ? std::optional{h} : std::nullopt;
}

void HelloAck::encode(std::byte* p) const {
  std::fill_n(p, kSize, std::byte{0});
  Bsdh{.mid = MessageId::hello_ack, .bufs = bufs, .length = kSize}.encode(p);
  p += Bsdh::kSize;
  p[0] = nibbles(version_major, version_minor);
  p[1] = static_cast<std::byte>(capabilities);
  p[3] = static_cast<std::byte>(max_adverts);
  store_be(p + 4, receive_size);
}

}  // namespace weft::sdp
