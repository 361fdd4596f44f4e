// The packet clock: when each packet is due, by absolute deadlines, and how late they left.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace weft::stream {

// Packet `number` is due (number - base) periods after the origin. No drift: a deadline does not
// depend on when the one before it was met.
class PacketClock {
 public:
  PacketClock() = default;
  // `origin_ns`: when packet `base` is, or was, due.
  PacketClock(double packets_per_second, int64_t origin_ns, uint64_t base = 0)
      : per_second_(packets_per_second), origin_ns_(origin_ns), base_(base) {}
  // Without a rate all packets are due at once.
  bool paced() const { return per_second_ > 0; }
  int64_t due_ns(uint64_t number) const;
  // The first packet that is not due at `now_ns`; `base` before the origin.
  uint64_t due_before(int64_t now_ns) const;

 private:
  double per_second_ = 0;
  int64_t origin_ns_ = 0;
  uint64_t base_ = 0;
};

// When packets are due that bring their times along: as they followed each other, each stream by
// its own clock.
class OwnPace {
 public:
  explicit OwnPace(size_t streams) : offsets_(streams) {}
  // What is of `time_ns` is due at `now_ns`: in all streams, or in one whose clock was set anew.
  void begin(int64_t time_ns, int64_t now_ns) {
    offsets_.assign(offsets_.size(), now_ns - time_ns);
  }
  void begin_anew(size_t stream, int64_t time_ns, int64_t now_ns) {
    offsets_[stream] = now_ns - time_ns;
  }
  int64_t due_ns(size_t stream, int64_t time_ns) const { return time_ns + offsets_[stream]; }

 private:
  std::vector<int64_t> offsets_;
};

// Sleeps until then, of the clock of kit::now_ns().
void sleep_until(int64_t ns);

// How late packets were, to 1/16 of the value.
class Lateness {
 public:
  void add(int64_t ns, uint64_t packets);
  // Microseconds that this share of the packets did not exceed.
  double quantile_us(double share) const;
  double max_us() const { return static_cast<double>(max_) * 1e-3; }

 private:
  static constexpr unsigned kParts = 16;  // of each doubling
  std::array<uint64_t, 64 * kParts> counts_{};
  uint64_t all_ = 0;
  int64_t max_ = 0;
};

}  // namespace weft::stream
