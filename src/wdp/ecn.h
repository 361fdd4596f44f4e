// Explicit congestion notification (RFC 3168): a router that is about to be congested marks
// datagrams which say that their sender listens, instead of dropping them (spec/wdp-rd 5.6).
#pragma once

#include <cstdint>

namespace weft::wdp {

// The two low bits of the traffic class.
inline constexpr uint8_t kEcnBits = 3;
inline constexpr uint8_t kEct0 = 2;  // its sender listens
inline constexpr uint8_t kCe = 3;    // marked

constexpr uint8_t without_ecn(uint8_t traffic_class) {
  return static_cast<uint8_t>(traffic_class & ~kEcnBits);
}
constexpr uint8_t with_ect(uint8_t traffic_class) {
  return static_cast<uint8_t>(without_ecn(traffic_class) | kEct0);
}
constexpr bool is_marked(uint8_t traffic_class) {
  return (traffic_class & kEcnBits) == kCe;
}

// Whether a sender may say ECT(0). Some paths carry no such datagrams, so it stops where none of
// the first ones come through (RFC 9000 13.4.2). Of one channel.
class EcnValidation {
 public:
  explicit EcnValidation(bool wanted) : state_(wanted ? State::testing : State::off) {}
  bool may_say() const { return state_ != State::off; }
  void arrived() {
    if (state_ == State::testing) state_ = State::capable;
  }
  // Questions in a row without an answer. Nothing is found to be lost before something has arrived.
  void unanswered(uint32_t in_a_row) {
    if (state_ == State::testing && in_a_row >= kMostUnanswered) state_ = State::off;
  }

 private:
  enum class State : uint8_t { testing, capable, off };
  static constexpr uint32_t kMostUnanswered = 3;
  State state_;
};

}  // namespace weft::wdp
