// Whether to look at the next datagram before it is taken: a large one that comes alone, as on
// loopback, is worth two system calls, for it goes straight to its place (docs/design/17).
#pragma once

namespace weft::drive {

class LookAhead {
 public:
  // To be asked before each datagram.
  bool pays() { return likely_ > 0 && (no_looks_ == 0 || --no_looks_ == 0); }
  // One was taken.
  void came(bool large) {
    if (large) {
      likely_ = kLikely;
    } else if (likely_ > 0) {
      --likely_;
    }
  }
  // A large one was looked at, and could not go to its place at once; or it could.
  void in_vain() {
    if (++refusals_ < kRefusals) return;
    refusals_ = 0;
    no_looks_ = kLooksOff;
  }
  void in_place() { refusals_ = 0; }

 private:
  // Between those of a Write or Read come small ones, which say how far it is: after a large one so
  // many are looked at.
  static constexpr unsigned kLikely = 4;
  // Large ones in a row that could not go to their places at once, and datagrams for which nobody
  // looks then. The first of each Send is one, for it opens the message.
  static constexpr unsigned kRefusals = 4;
  static constexpr unsigned kLooksOff = 64;

  unsigned likely_ = 0;    // the next datagrams that may well be large and come alone
  unsigned refusals_ = 0;  // since the last that was not
  unsigned no_looks_ = 0;  // until they are looked at again
};

}  // namespace weft::drive
