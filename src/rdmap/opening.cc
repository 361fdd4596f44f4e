#include "rdmap/opening.h"

#include "base/earliest.h"

namespace weft::rdmap {
namespace {
using namespace std::chrono_literals;

constexpr Duration kOpeningWriteAfter = 10ms;  // spec/mpa 2.4
}  // namespace

Opening::Opening(const StreamConfig& config, Time now) : config_(config) {
  const mpa::Parameters& p = config.mpa;
  if (!config.initiator) {
    // RFC 5044 section 7.1.2 and RFC 6581 section 9: the Responder sends nothing before the
    // Initiator's first FPDU.
    silent_ = true;
    // Linux siw has no peer-to-peer model and sends nothing unasked: when its program waits for the
    // server to speak, both would wait for ever. By then it has surely taken the Reply in
    // (spec/mpa 2.5.2).
    if (!p.extension && !p.peer_to_peer && config.responder_wait > Duration{}) {
      speak_at_ = now + config.responder_wait;
    }
  } else if (p.peer_to_peer) {
    rtr_pending_ = true;
  } else {
    // A server that speaks first waits for an FPDU that no program posted (spec/mpa 2.4).
    opening_write_at_ = p.extension ? now : now + kOpeningWriteAfter;
  }
}

bool Opening::end_silence() {
  speak_at_ = Time::never();
  return std::exchange(silent_, false);
}

void Opening::rtr_written(Time now) {
  rtr_pending_ = false;
  if (!config_.mpa.extension) rtr_settles_at_ = now + kRtrSettles;
}

bool Opening::wrote(Time now) {
  if (std::exchange(wrote_, true)) return false;
  opening_write_at_ = Time::never();
  wrote_at_ = now;
  if (!config_.initiator || config_.mpa.extension || received_) return false;
  schedule_kick();
  return true;
}

void Opening::received() {
  received_ = true;
  kick_at_ = Time::never();  // but the peer may speak without having seen the RTR (spec/mpa 2.4)
}

bool Opening::kick_due(Time now) {
  if (now < kick_at_) return false;
  schedule_kick();
  return true;
}

bool Opening::write_due(Time now) {
  if (now < opening_write_at_) return false;
  opening_write_at_ = Time::never();
  return !wrote_;
}

Time Opening::deadline(bool kicks) const {
  return earliest(opening_write_at_, speak_at_, rtr_settles_at_, kicks ? kick_at_ : Time::never());
}

void Opening::schedule_kick() {
  kick_at_ = kicks_ < kKickAfter.size() ? wrote_at_ + kKickAfter[kicks_] : Time::never();
  ++kicks_;
}

}  // namespace weft::rdmap
