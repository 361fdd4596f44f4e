#include "wire/wdp_cookie.h"

#include <bit>

namespace weft::wire {
namespace {

// SipHash reads and writes little-endian.
uint64_t load_le64(const std::byte* p) {
  return byte_swap(load_be<uint64_t>(p));
}

class SipState {
 public:
  SipState(uint64_t k0, uint64_t k1)
      : v0_(k0 ^ 0x736f6d6570736575U),
        v1_(k1 ^ 0x646f72616e646f6dU),
        v2_(k0 ^ 0x6c7967656e657261U),
        v3_(k1 ^ 0x7465646279746573U) {}

  void compress(uint64_t word) {
    v3_ ^= word;
    round();
    round();
    v0_ ^= word;
  }
  uint64_t finish() {
    v2_ ^= 0xff;
    for (int i = 0; i < 4; ++i) round();
    return v0_ ^ v1_ ^ v2_ ^ v3_;
  }

 private:
  void round() {
    v0_ += v1_;
    v1_ = std::rotl(v1_, 13) ^ v0_;
    v0_ = std::rotl(v0_, 32);
    v2_ += v3_;
    v3_ = std::rotl(v3_, 16) ^ v2_;
    v0_ += v3_;
    v3_ = std::rotl(v3_, 21) ^ v0_;
    v2_ += v1_;
    v1_ = std::rotl(v1_, 17) ^ v2_;
    v2_ = std::rotl(v2_, 32);
  }

  uint64_t v0_, v1_, v2_, v3_;
};

}  // namespace

uint64_t siphash24(const CookieSecret& key, Bytes message) {
  SipState state(load_le64(key.data()), load_le64(key.data() + 8));
  const size_t whole = message.size() / 8 * 8;
  for (size_t i = 0; i < whole; i += 8) state.compress(load_le64(message.data() + i));
  // The last word: what is left, and the length in its top byte.
  uint64_t last = static_cast<uint64_t>(message.size() & 0xff) << 56;
  for (size_t i = whole; i < message.size(); ++i) {
    last |= std::to_integer<uint64_t>(message[i]) << (8 * (i - whole));
  }
  state.compress(last);
  return state.finish();
}

void CookieSubject::encode(std::byte* p) const {
  std::memcpy(p, address.raw.data(), 16);
  store_be(p + 16, port);
  store_be(p + 18, token.value());
  store_be(p + 22, xid.value());
}

HandshakeCookie make_cookie(const CookieSecret& secret, const CookieSubject& subject) {
  std::array<std::byte, CookieSubject::kSize> message{};
  subject.encode(message.data());
  const uint64_t hash = siphash24(secret, message);
  return HandshakeCookie{hash != 0 ? hash : 1};
}

}  // namespace weft::wire
