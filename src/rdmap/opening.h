// How a stream begins: which side may speak first, and what is said unasked so that the other side
// may speak (RFC 5044 section 7.1.2, RFC 6581 section 9, spec/mpa 2.4 and 2.5). No bytes: the
// stream writes them.
#pragma once

#include "base/time.h"
#include "rdmap/limits.h"

namespace weft::rdmap {

class Opening {
 public:
  // `config` has to stay.
  Opening(const StreamConfig& config, Time now);

  // A Responder whose Initiator has sent no FPDU yet: nothing may be sent.
  bool silent() const { return silent_; }
  // False when it was over before.
  bool end_silence();

  // The Initiator's ready-to-receive (RFC 6581) is the first that goes out.
  bool owes_rtr() const { return rtr_pending_; }
  void rtr_written(Time now);
  // The peer has had the time that it needs behind the RTR. So long nothing ends.
  bool rtr_settled() const { return rtr_settles_at_.is_never(); }
  Time rtr_settles_at() const { return rtr_settles_at_; }

  // Something is written, or came. The first is true when a plain peer has said nothing yet: it
  // may have slept over what it was sent (spec/mpa 2.5.5).
  bool wrote(Time now);
  void received();

  // The program is done: no Write goes out that it did not post.
  void skip_write() { opening_write_at_ = Time::never(); }
  // The stream ends: there is nothing to begin any more. Kicks go on.
  void stop() { opening_write_at_ = speak_at_ = Time::never(); }
  void stop_kicks() { kick_at_ = Time::never(); }

  // What is due; each answers once.
  void settle(Time now) {
    if (now >= rtr_settles_at_) rtr_settles_at_ = Time::never();
  }
  bool kick_due(Time now);
  bool silence_due(Time now) const { return now >= speak_at_; }
  bool write_due(Time now);
  // With `kicks` if it is still of use to wake the peer.
  Time deadline(bool kicks) const;

 private:
  void schedule_kick();

  const StreamConfig& config_;
  bool silent_ = false;
  bool rtr_pending_ = false;
  bool wrote_ = false;
  bool received_ = false;
  uint8_t kicks_ = 0;
  Time wrote_at_;
  Time opening_write_at_ = Time::never();  // unasked zero-length Write of spec/mpa 2.4
  Time speak_at_ = Time::never();          // the silence ends; see StreamConfig::responder_wait
  Time kick_at_ = Time::never();           // spec/mpa 2.5.5
  Time rtr_settles_at_ = Time::never();    // spec/mpa 2.5.6
};

}  // namespace weft::rdmap
