// Finds out what the path carries (spec/wdp 5.4, PROBE): tries the largest size first, while data
// already uses it, and goes down one step where only small datagrams come through.
//
//   round 1: [size]            answered: the path carries it, and that is all
//   later:   [size] [least]    the least alone is answered, three times: one step down
//                              neither is answered: the peer does not run; nothing is learnt
#pragma once

#include <optional>

#include "base/random.h"
#include "base/types.h"
#include "wdp/limits.h"

namespace weft::wdp {

class PathProbe {
 public:
  static constexpr Duration kEvery = 50ms;
  static constexpr Duration kSeldom = 10s;  // while the peer is silent
  static constexpr uint32_t kTries = 3;
  // The probe that every path carries: PROBE without padding.
  static constexpr size_t kSmall = 64;

  // UDP payload that every path is held to carry.
  static size_t least(bool ipv4);

  // `size`: UDP payload that the interface and the peer allow.
  PathProbe(size_t size, bool ipv4, bool on, Random& random);

  // A probe is to be sent now: its size and XID.
  struct Probe {
    size_t size;
    Xid xid;
  };
  std::optional<Probe> take(Time now);
  bool ready(Time now) const { return !done_ && (small_due_ || due_ || now >= next_); }
  void answered(Xid xid, size_t size);
  // Of a probe that is due no more: it waits for the socket.
  Time deadline() const { return done_ || due_ ? Time::never() : next_; }
  void tick(Time now) { due_ = due_ || now >= next_; }
  // The size to use. Falls while large probes find nobody.
  size_t size() const { return size_; }
  bool done() const { return done_; }
  // The kernel knows that the path carries no more.
  void limit(size_t size);

 private:
  void end_round();
  void step_down();
  void rest_at_least();

  const bool ipv4_;
  size_t size_;
  bool done_ = false;
  Xid xid_;
  uint32_t rounds_ = 0;  // begun
  bool due_ = true;
  bool small_due_ = false;  // in this round, behind the large one
  bool alive_ = false;      // the small one of this round was answered
  uint32_t misses_ = 0;     // rounds in which it was that alone
  Duration pause_ = kEvery;
  Time next_;
};

}  // namespace weft::wdp
