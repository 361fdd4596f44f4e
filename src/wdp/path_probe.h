// Finds out what the path carries (wire.md 9.1, PROBE): tries the largest size first, while data
// already uses it, and goes down one step when three tries bring no answer.
#pragma once

#include <array>
#include <optional>

#include "base/random.h"
#include "base/types.h"
#include "wdp/limits.h"

namespace weft::wdp {

class PathProbe {
 public:
  static constexpr Duration kEvery = 200ms;
  static constexpr uint32_t kTries = 3;

  // `size`: UDP payload that the interface, the peer and the route's MTU allow.
  PathProbe(size_t size, bool on, Random& random);

  // A probe is to be sent now: its size and XID.
  struct Probe {
    size_t size;
    Xid xid;
  };
  std::optional<Probe> take(Time now);
  bool ready(Time now) const { return !done_ && now >= next_; }
  void answered(Xid xid, size_t size);
  Time deadline() const { return done_ ? Time::never() : next_; }
  // The size to use. Falls while probes find nobody.
  size_t size() const { return size_; }
  bool done() const { return done_; }
  // The kernel knows that the path carries no more.
  void limit(size_t size);

 private:
  void step_down();

  size_t size_;
  bool done_;
  Xid xid_;
  uint32_t tries_ = 0;
  Time next_;
};

}  // namespace weft::wdp
