// CTL of a session that stands (spec/wdp 5): keepalive, teardown, ERR, probes of the path.
//
//   open ──disconnect()──► closing ──DREP, DREQ, or 3 tries──► time_wait ──2 s──► gone
//     │ DREQ                                                      ▲
//     ├────► peer_left ──all that it sent has come, or 10 ms──────┤
//     │          └──disconnect()──────────────────────────────────┘
//     └──5 keepalives without an answer──► gone
//
// A DREQ names the highest PSN that its sender used. The network may bring it before the data: it
// is answered at once, and the session takes what is still on its way before it ends.
#pragma once

#include <vector>

#include "wdp/counters.h"
#include "wdp/ctl_outbox.h"
#include "wdp/error_reporter.h"
#include "wdp/keepalives.h"
#include "wdp/path_probe.h"
#include "wdp/psn_window.h"
#include "wdp/rtt.h"
#include "wdp/uc_writer.h"
#include "wire/wdp_ctl.h"

namespace weft::wdp {

class SessionControl final : public ErrorReporter {
 public:
  enum class State : uint8_t { open, peer_left, closing, time_wait, gone };
  enum class Event : uint8_t {
    none,
    peer_leaves,  // DREQ came: see peer_last(). peer_is_gone() ends it
    peer_closed,  // and what it has overtaken did not come in time
    closed,       // our own DREQ is through, or nobody answers it
    lost,         // keepalives were not answered, or nobody has the peer's port
    refused,      // ERR came: see last_error() and refused_header()
  };

  // All references are kept.
  SessionControl(const UcParameters& parameters, UcWriter& writer, Rtt& rtt, UcCounters& counters,
                 Random& random, Time now);

  // Something of the peer's came that was in order.
  void heard(Time now) {
    now_ = now;
    keepalives_.heard(now);
  }
  // A CTL message of the session's; token and address were right. `size`: of the datagram.
  Event received(const wire::WdpCtl& c, PsnWindow& psns, Time now);
  const wire::WdpCtl& last_error() const { return error_; }
  Bytes refused_header() const { return error_header_; }

  void disconnect(uint32_t reason, Time now);
  // The highest PSN that the peer which leaves has used; all up to it has come.
  Psn peer_last() const { return peer_last_; }
  void peer_is_gone(Time now) { begin_time_wait(now); }
  // spec/wdp 5.3: at most 10 a second.
  void report(wire::TermError error, const wire::WdpData& about) override;

  // A KA out of turn: how far has the peer come? `again`: as Keepalives::ask().
  void ask(Time now, bool again);
  const Keepalives& keepalives() const { return keepalives_; }
  // Since when it asks, and nothing at all comes from the peer; never where it is not so.
  Time unanswered_since() const { return alive() ? keepalives_.unanswered_since() : Time::never(); }

  // Nobody has the peer's port. Nothing happens if anything has come since it was asked.
  Event port_closed();

  State state() const { return state_; }
  bool ready(Time now) const { return !outbox_.empty() || (alive() && probe_.ready(now)); }
  // One datagram, if the train is empty and there is one.
  void fill(Train& train, Time now);

  Time deadline() const;
  Event tick(Time now);

  PathProbe& probe() { return probe_; }
  const PathProbe& probe() const { return probe_; }

 private:
  bool alive() const { return state_ == State::open; }
  wire::WdpCtl message(wire::CtlType type) const;
  void say(const wire::WdpCtl& c);
  void say_dreq(Time now);
  void begin_time_wait(Time now);

  const UcParameters& parameters_;
  UcWriter& writer_;
  Rtt& rtt_;
  UcCounters& counters_;
  State state_ = State::open;
  PathProbe probe_;
  CtlOutbox outbox_;

  Time now_;  // of the last call that told it
  Keepalives keepalives_;
  uint32_t reason_ = 0;
  uint32_t dreqs_ = 0;
  Time dreq_at_ = Time::never();
  Psn peer_last_;
  Time left_at_ = Time::never();  // peer_left ends
  Time over_at_ = Time::never();  // time_wait ends
  Time errors_since_;
  uint32_t errors_ = 0;
  wire::WdpCtl error_;
  std::vector<std::byte> error_header_;
};

}  // namespace weft::wdp
