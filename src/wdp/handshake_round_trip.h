// The round trip that a handshake shows: from a message to what answers it, where it was said once.
// Of one that was repeated nobody knows which was answered (RFC 9002 and Karn's algorithm).
#pragma once

#include <optional>

#include "base/time.h"

namespace weft::wdp {

// Of one side. A value type. Not thread-safe.
class HandshakeRoundTrip {
 public:
  // What is said from now on has an answer of its own.
  void begin() { said_at_ = Time::never(); }
  void said(Time now) {
    repeated_ = !said_at_.is_never();
    if (!repeated_) said_at_ = now;
  }
  // The answer that comes will be to something else.
  void spoil() { repeated_ = true; }
  void answered(Time now) {
    if (!repeated_) value_ = now - said_at_;
  }
  const std::optional<Duration>& value() const { return value_; }

 private:
  Time said_at_ = Time::never();  // the first of its kind
  bool repeated_ = false;
  std::optional<Duration> value_;
};

}  // namespace weft::wdp
