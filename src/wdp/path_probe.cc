#include "wdp/path_probe.h"

#include <algorithm>
#include <array>
#include <utility>

#include "wire/ip_headers.h"

namespace weft::wdp {
namespace {

// MTUs of paths: jumbo frames, FDDI and what was modelled on it, Ethernet, VXLAN, tunnels such as
// WireGuard, the least of IPv6, and of IPv4 what every host takes.
constexpr std::array<size_t, 8> kMtus = {16384, 9000, 4352, 1500, 1450, 1420, 1280, 576};
constexpr size_t kLeastIpv4 = 576;
constexpr size_t kLeastIpv6 = 1280;

}  // namespace

PathProbe::PathProbe(size_t size, bool ipv4, bool on, Random& random)
    : ipv4_(ipv4), size_(size), xid_(static_cast<uint32_t>(random.next())) {
  rest_at_least();
  done_ |= !on;
}

size_t PathProbe::least(bool ipv4) {
  return (ipv4 ? kLeastIpv4 : kLeastIpv6) - wire::udp_ip_headers(ipv4);
}

void PathProbe::rest_at_least() {
  if (size_ <= least(ipv4_)) done_ = true;
}

void PathProbe::step_down() {
  misses_ = 0;
  const size_t headers = wire::udp_ip_headers(ipv4_);
  const auto* lower =
      std::find_if(kMtus.begin(), kMtus.end(), [&](size_t mtu) { return mtu < size_ + headers; });
  if (lower != kMtus.end()) size_ = *lower - headers;
  rest_at_least();
}

// A peer that answers nothing says nothing of the path: it is stopped, busy, or gone.
void PathProbe::end_round() {
  if (std::exchange(alive_, false)) {
    pause_ = kEvery;
    if (++misses_ == kTries) step_down();
  } else if (rounds_ > 1) {
    pause_ = std::min(pause_ * 2, kSeldom);
  }
}

std::optional<PathProbe::Probe> PathProbe::take(Time now) {
  if (!ready(now)) return {};
  if (std::exchange(small_due_, false)) return Probe{kSmall, xid_};
  due_ = false;
  if (rounds_ > 0) end_round();
  if (done_) return {};
  small_due_ = rounds_++ > 0;
  next_ = now + pause_;
  return Probe{size_, xid_};
}

void PathProbe::answered(Xid xid, size_t size) {
  if (xid != xid_) return;
  if (size == size_) done_ = true;
  if (size == kSmall) alive_ = true;
}

void PathProbe::limit(size_t size) {
  if (size >= size_) return;
  size_ = size;
  misses_ = 0;
  rest_at_least();
}

}  // namespace weft::wdp
