#include "bench/relay.h"

#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <ctime>
#include <utility>

#include "kit/clock.h"
#include "kit/failure.h"

namespace weft::bench {
namespace {

constexpr size_t kMostPacket = 65'535;
constexpr int kPacketsAtOnce = 64;  // of a way, before the other one has its turn

}  // namespace

Link Link::of(double delay_ms, double loss, double mbps) {
  constexpr double kLeastQueueMs = 20;
  Link link;
  link.delay = std::chrono::nanoseconds{static_cast<int64_t>(delay_ms * 1e6)};
  link.loss = loss;
  link.bits_per_s = mbps * 1e6;
  if (mbps > 0) {
    const double ms = std::max(kLeastQueueMs, 4 * delay_ms);
    link.queue = static_cast<size_t>(ms * 1e-3 * link.bits_per_s / 8);
  }
  return link;
}

void LinkQueue::shape(const Link& link) {
  link_ = link;
  way_.clear();
  left_ = waiting_ = 0;
  free_at_ = 0;
}

void LinkQueue::forget_what_left(int64_t now) {
  while (left_ < way_.size() && way_[left_].leaves <= now) waiting_ -= way_[left_++].bytes.size();
}

bool LinkQueue::take(std::vector<std::byte> packet, int64_t now) {
  forget_what_left(now);
  if (link_.loss > 0 && std::bernoulli_distribution{link_.loss}(random_)) return false;
  if (waiting_ + packet.size() > link_.queue) return false;
  if (link_.bits_per_s > 0) {
    const double bits = 8.0 * static_cast<double>(packet.size());
    free_at_ = std::max(now, free_at_) + static_cast<int64_t>(bits / link_.bits_per_s * 1e9);
  } else {
    free_at_ = now;
  }
  waiting_ += packet.size();
  way_.push_back({free_at_, free_at_ + link_.delay.count(), std::move(packet)});
  return true;
}

std::vector<std::byte> LinkQueue::arrived(int64_t now) {
  forget_what_left(now);
  if (next() > now) return {};
  std::vector<std::byte> packet = std::move(way_.front().bytes);
  way_.pop_front();
  --left_;
  return packet;
}

Relay::Relay(port::Fd one, port::Fd other)
    : one_(std::move(one)), other_(std::move(other)), stop_(::eventfd(0, EFD_CLOEXEC)) {
  if (!stop_.valid()) throw kit::system_failure("eventfd");
  directions_.push_back({one_.get(), other_.get(), LinkQueue{1}});
  directions_.push_back({other_.get(), one_.get(), LinkQueue{2}});
  thread_ = std::thread{[this] { run(); }};
}

Relay::~Relay() {
  const uint64_t once = 1;
  (void)!::write(stop_.get(), &once, sizeof once);
  thread_.join();
}

void Relay::shape(const Link& link) {
  const std::lock_guard lock{mutex_};
  for (Direction& direction : directions_) direction.queue.shape(link);
}

// True: there may be more.
bool Relay::carry(Direction& direction, int64_t now) {
  std::array<std::byte, kMostPacket> packet;
  int n = 0;
  for (; n < kPacketsAtOnce; ++n) {
    const ssize_t bytes = ::read(direction.from, packet.data(), packet.size());
    if (bytes <= 0) break;
    (void)direction.queue.take({packet.begin(), packet.begin() + bytes}, now);
  }
  for (;;) {
    const std::vector<std::byte> out = direction.queue.arrived(now);
    if (out.empty()) break;
    // What the device does not take is lost there.
    (void)!::write(direction.to, out.data(), out.size());
  }
  return n == kPacketsAtOnce;
}

void Relay::run() {
  for (;;) {
    bool more = false;
    int64_t next = INT64_MAX;
    {
      const std::lock_guard lock{mutex_};
      for (Direction& direction : directions_) {
        more = carry(direction, kit::now_ns()) || more;
        next = std::min(next, direction.queue.next());
      }
    }
    std::array<pollfd, 3> fds{{{.fd = one_.get(), .events = POLLIN, .revents = 0},
                               {.fd = other_.get(), .events = POLLIN, .revents = 0},
                               {.fd = stop_.get(), .events = POLLIN, .revents = 0}}};
    timespec wait{};
    if (!more && next != INT64_MAX) {
      const int64_t left = std::max<int64_t>(0, next - kit::now_ns());
      wait = {.tv_sec = left / 1'000'000'000, .tv_nsec = left % 1'000'000'000};
    }
    const bool for_ever = !more && next == INT64_MAX;
    (void)::ppoll(fds.data(), fds.size(), for_ever ? nullptr : &wait, nullptr);
    if (fds[2].revents != 0) return;
  }
}

port::Fd open_tun(const char* name) {
  constexpr const char* kDevice = "/dev/net/tun";
  port::Fd fd{::open(kDevice, O_RDWR | O_CLOEXEC | O_NONBLOCK)};
  if (!fd.valid()) throw kit::system_failure(kDevice);
  ifreq request{};
  request.ifr_flags = IFF_TUN | IFF_NO_PI;
  std::strncpy(request.ifr_name, name, IFNAMSIZ - 1);
  if (::ioctl(fd.get(), TUNSETIFF, &request) != 0) {
    throw kit::system_failure(std::string{kDevice} + ", for which --link has to be run as root");
  }
  return fd;
}

}  // namespace weft::bench
