// Whether the peer of a channel is there (spec/wdp-rd 2.2, 5.3, 7.4): the KAs that ask it, and when
// one is due.
//
//   nothing came since the handshake         every 0.5 s, as long as the peer may wait for the RTU
//   somebody asks                            at once, and until there is an answer
//   probes of data are not answered          with the third, and each further one
//   connections, and nothing passes          ever less often (peer_watch.h); 15 s are the end
#pragma once

#include "wdp/handshake.h"
#include "wdp/peer_questions.h"
#include "wdp/peer_watch.h"

namespace weft::wdp {

// Of one channel. Engine holder only.
class RdPresence {
 public:
  // --- connections that the channel carries
  void enter() { ++connections_; }
  void leave() { --connections_; }
  bool is_needed() const { return connections_ > 0; }

  // --- what passes
  // The handshake is over. `called`: this side began it, so that the peer may lack its RTU.
  void opens(bool called, Time now) {
    watch_.heard(now);
    questions_.ask_again();
    if (called) ask_first_ = now + kAskForPeer;
  }
  // The channel was at rest, after so many questions. Whether the peer knows it yet is to be found
  // out.
  void wakes(uint32_t questions, Time now) {
    watch_.heard(now);
    questions_ = PeerQuestions{questions};
    was_at_rest_ = true;
  }
  uint32_t questions() const { return questions_.said(); }
  // And nothing has come since.
  bool was_at_rest() const { return was_at_rest_; }
  // Anything came from the peer.
  void heard(Time now) {
    ask_first_ = Time::never();
    watch_.heard(now);
    was_at_rest_ = false;
  }
  // Data came, or was acknowledged.
  void exchanged() { watch_.exchanged(); }
  // It was a KA, or the answer to one.
  void rested() { watch_.rested(); }
  // KAA. False: nobody has asked that.
  bool answered(uint32_t question) {
    rested();
    return questions_.heard(question);
  }

  // --- questions
  // Asks, until this one or a later one is answered.
  uint32_t want() { return questions_.want(); }
  bool has_answered(uint32_t question) const { return questions_.has_answered(question); }
  // Such a one is due. said(): it is said now.
  bool due() const { return questions_.due(); }
  void said(Time now) { questions_.said(now); }
  // The number of the KA that is said now.
  uint32_t next() { return questions_.next(); }

  // --- time
  // Nobody waits to hear whether the peer is there.
  bool may_rest() const { return !is_needed() && ask_first_.is_never(); }
  Time deadline() const {
    if (!is_needed()) return ask_first_;
    return std::min({ask_first_, watch_.deadline(), questions_.deadline()});
  }
  // `active`: when data came or went last. True: time to ask.
  bool tick_first(Time active, Time now) {
    if (now < ask_first_) return false;
    // The peer gives up by then.
    ask_first_ = now < active + kHandshakeFails ? now + kAskForPeer : Time::never();
    return true;
  }
  // `probes`: of data, in a row without an answer. A process that has begun anew knows no data of
  // the channel, and answers KA. True: time to ask.
  bool follows(uint32_t probes) { return questions_.follows(probes); }
  // end: the peer is gone.
  PeerWatch::Due tick(Time now) {
    if (!is_needed()) return PeerWatch::Due::nothing;
    questions_.tick(now);
    return watch_.tick(now);
  }

  // Questions in a row that it has left unanswered, where they are enough: it may have no socket
  // any more, which its kernel would tell.
  uint32_t silence(uint32_t probes) const {
    const uint32_t questions = std::max(probes, watch_.unanswered());
    return questions >= kQuestionsToInquire ? questions : 0;
  }

 private:
  size_t connections_ = 0;
  bool was_at_rest_ = false;
  Time ask_first_ = Time::never();
  PeerQuestions questions_;
  PeerWatch watch_;
};

}  // namespace weft::wdp
