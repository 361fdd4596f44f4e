// What a session asks its peer (spec/wdp 5.1): is it there, after a silence; and how far has it
// come, for SendWindow. KA is both, and the answer to any KA is one to the question that is open.
#pragma once

#include <optional>

#include "base/time.h"
#include "base/types.h"

namespace weft::wdp {

class Keepalives {
 public:
  // From now on the peer may be silent for ten seconds. `silent`: nothing is asked by itself, of a
  // static session.
  Keepalives(bool silent, Time now);

  // Something of the peer's came that was in order.
  void heard(Time now) {
    heard_ = now;
    unanswered_ = 0;
  }
  // The XID of a KA that leaves now. `again`: the question is the one before, and an answer to any
  // of its KAs is one to it; else those asked before count no more.
  Xid ask(Time now, bool again);
  bool asking() const { return !sent_.is_never(); }
  // How long the answer with this XID took. Nothing: to no KA of the open question.
  std::optional<Duration> answered(Xid xid, Time now);
  // From the KA that was answered last to its answer.
  Duration answer_took() const { return answer_took_; }
  // Since when it asks, and nothing at all comes from the peer; never where it is not so.
  Time unanswered_since() const { return heard_ < asks_since_ ? asks_since_ : Time::never(); }

  // Nothing is asked by itself any more.
  void stop() { next_ = Time::never(); }
  Time deadline() const { return next_; }
  // `ask`: a KA is due, by ask(). `lost`: those before were not answered.
  enum class Due : uint8_t { nothing, ask, lost };
  Due tick(Time now);

 private:
  Time heard_;
  Time asks_since_;          // the first question after that
  Time next_;                // KA by itself
  uint32_t unanswered_ = 0;  // of those
  // The open question.
  Time sent_ = Time::never();  // the last KA, while none is answered
  uint32_t last_ = 0;          // its XID
  uint32_t first_ = 0;         // that of the first which still counts
  Time first_sent_;
  Duration answer_took_{0};
};

}  // namespace weft::wdp
