// The KAs of a channel: which of them the peer has answered, and when one is due besides those of
// PeerWatch.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/time.h"
#include "wdp/rd_limits.h"

namespace weft::wdp {

class PeerQuestions {
 public:
  // `said`: how many were said before the channel was at rest.
  explicit PeerQuestions(uint32_t said = 0) : said_(said), answered_(said), wanted_(said) {}

  uint32_t said() const { return said_; }
  // The number of the next one, which is said now.
  uint32_t next() { return ++said_; }

  // Asks, until there is an answer to this question or a later one.
  uint32_t want() {
    wanted_ = said_ + 1;
    due_ = true;
    return wanted_;
  }
  // Another process answers now: what nobody has answered is asked again.
  void ask_again() { due_ = due_ || answered_ < wanted_; }
  bool due() const { return due_; }
  // The one that is due is said.
  void said(Time now) {
    due_ = false;
    again_at_ = now + kFirstRest;
  }
  // False: nobody has asked that.
  bool heard(uint32_t answer) {
    if (answer > said_) return false;
    answered_ = std::max(answered_, answer);
    if (answered_ >= wanted_) again_at_ = Time::never();
    return true;
  }
  bool has_answered(uint32_t question) const { return answered_ >= question; }

  // `probes`: of data, in a row without an answer. Is it time to ask besides?
  bool follows(uint32_t probes) {
    if (probes == probes_) return false;
    probes_ = probes;
    return probes >= kProbesToAsk;
  }

  Time deadline() const { return again_at_; }
  void tick(Time now) {
    if (now < again_at_) return;
    again_at_ = Time::never();
    due_ = true;
  }

 private:
  uint32_t said_;
  uint32_t answered_;
  uint32_t wanted_;
  bool due_ = false;
  Time again_at_ = Time::never();
  uint32_t probes_ = 0;
};

}  // namespace weft::wdp
