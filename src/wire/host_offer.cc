#include "wire/host_offer.h"

namespace weft::wire {

std::optional<HostOffer> HostOffer::parse(const std::byte* p) {
  if (load_be<uint16_t>(p) != kVersion) return {};
  HostOffer o;
  o.pid = load_be<uint32_t>(p + 4);
  o.descriptor = load_be<uint32_t>(p + 8);
  o.network_namespace = load_be<uint64_t>(p + 16);
  o.address = load_be<uint64_t>(p + 24);
  std::memcpy(o.nonce.data(), p + 32, o.nonce.size());
  return o;
}

void HostOffer::encode(std::byte* p) const {
  std::memset(p, 0, kSize);
  store_be(p, kVersion);
  store_be(p + 4, pid);
  store_be(p + 8, descriptor);
  store_be(p + 16, network_namespace);
  store_be(p + 24, address);
  std::memcpy(p + 32, nonce.data(), nonce.size());
}

}  // namespace weft::wire
