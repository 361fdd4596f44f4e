#include "stream/pace.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <ctime>

namespace weft::stream {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

}  // namespace

// Many packets are too large a number for a product in double: whole seconds apart.
int64_t PacketClock::due_ns(uint64_t number) const {
  const auto n = static_cast<double>(static_cast<int64_t>(number - base_));
  const double seconds = std::floor(n / per_second_);
  const double rest = n - seconds * per_second_;
  return origin_ns_ + static_cast<int64_t>(seconds) * kSecond +
         static_cast<int64_t>(std::ceil(rest * 1e9 / per_second_));
}

uint64_t PacketClock::due_before(int64_t now_ns) const {
  const int64_t passed = now_ns - origin_ns_;
  if (passed < 0) return base_;
  const int64_t whole = passed / kSecond;
  const auto seconds = static_cast<double>(whole);
  const auto rest = static_cast<double>(passed % kSecond);
  uint64_t n =
      base_ +
      static_cast<uint64_t>(std::max(seconds * per_second_ + rest * per_second_ * 1e-9, 1.0)) - 1;
  while (due_ns(n) <= now_ns) ++n;
  return n;
}

void sleep_until(int64_t ns) {
  const timespec t{.tv_sec = ns / kSecond, .tv_nsec = ns % kSecond};
  // A signal that ends the run ends the sleep.
  ::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, nullptr);
}

void Lateness::add(int64_t ns, uint64_t packets) {
  const auto value = static_cast<uint64_t>(std::max<int64_t>(ns, 0));
  max_ = std::max(max_, ns);
  all_ += packets;
  if (value < kParts) {
    counts_[value] += packets;
    return;
  }
  const auto doubling = static_cast<unsigned>(std::bit_width(value)) - 5;
  counts_[(doubling + 1) * kParts + (value >> doubling) - kParts] += packets;
}

double Lateness::quantile_us(double share) const {
  const auto wanted = static_cast<uint64_t>(std::ceil(static_cast<double>(all_) * share));
  uint64_t seen = 0;
  for (size_t i = 0; i < counts_.size(); ++i) {
    seen += counts_[i];
    if (seen < wanted || seen == 0) continue;
    if (i < kParts) return static_cast<double>(i) * 1e-3;
    const size_t doubling = i / kParts - 1;
    const auto upper = static_cast<double>((i % kParts + kParts + 1) << doubling);
    return std::min(upper, static_cast<double>(max_)) * 1e-3;
  }
  return 0;
}

}  // namespace weft::stream
