#include "wdp/keepalives.h"

#include "wdp/limits.h"

namespace weft::wdp {

Keepalives::Keepalives(bool silent, Time now)
    : heard_(now), next_(silent ? Time::never() : now + kKeepaliveAfter) {}

// The XID is a clock of milliseconds. Each KA has a number of its own, also where there are several
// in one.
Xid Keepalives::ask(Time now, bool again) {
  const auto clock = static_cast<uint32_t>(now.ns() / 1'000'000);
  again = again && asking();
  if (heard_ >= asks_since_) asks_since_ = now;
  last_ = last_ == 0 || static_cast<int32_t>(clock - last_) > 0 ? clock : last_ + 1;
  sent_ = now;
  if (!again) {
    first_ = last_;
    first_sent_ = now;
  }
  return Xid{last_};
}

// KAs are repeated sooner than a peer some milliseconds away can answer. Of those between the first
// and the last it is not known when they left: the first did before.
std::optional<Duration> Keepalives::answered(Xid xid, Time now) {
  const auto since_first = static_cast<int32_t>(xid.value() - first_);
  const auto before_last = static_cast<int32_t>(last_ - xid.value());
  if (!asking() || since_first < 0 || before_last < 0) return {};
  answer_took_ = now - (before_last == 0 ? sent_ : first_sent_);
  sent_ = Time::never();
  return answer_took_;
}

// After 10 s without receiving; 5 tries 1 s apart.
Keepalives::Due Keepalives::tick(Time now) {
  if (now < next_) return Due::nothing;
  if (unanswered_ == 0 && now < heard_ + kKeepaliveAfter) {
    next_ = heard_ + kKeepaliveAfter;
    return Due::nothing;
  }
  if (unanswered_ == kKeepaliveTries) {
    stop();
    return Due::lost;
  }
  ++unanswered_;
  next_ = now + kKeepaliveEvery;
  return Due::ask;
}

}  // namespace weft::wdp
