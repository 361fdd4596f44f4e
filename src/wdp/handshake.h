// How two sides of WDP come to a session (spec/wdp 4). One of these on each side; it plays either
// part, and where two queue pairs call each other at once it finds out which.
//
//   active                                    passive
//   idle ──connect()──► req_sent              idle ──requested()──► req_received
//     REQ, repeated       │ COOKIE: again       a repeated REQ: WAIT    │ accept(): REP
//                         │ WAIT: later                                 ▼
//                         │ REP                                      rep_sent ── RTU, data ─┐
//                         ▼                                             │ REP repeated      │
//     RTU, repeated  established                                        │ 12.7 s           ▼
//                                             failed ◄──────────────────┘        established
//   any ── REJ, 12.7 s ──► failed
//
// Of service 3 (rd_channel) a side may do both: it answers a REQ and calls as well, with one token.
// A REQ may come from anybody who writes the peer's address in it; the first answer decides.
//
// Of service 4 (ud_resolution) the REP is the end: the active side is established and says no RTU,
// the passive side answers repeated REQs for 2 s and then is established, too.
//
// Before the peer has shown that it is where it says, what is sent to it is at most three times
// what came (part IV).
//
// Above 400 lines with its source: one machine, and each message meets each of its states.
#pragma once

#include <optional>
#include <vector>

#include "base/adapter_ports.h"
#include "base/random.h"
#include "wdp/address_validation.h"
#include "wdp/ctl_outbox.h"
#include "wdp/handshake_round_trip.h"
#include "wdp/handshake_tries.h"
#include "wdp/offer.h"
#include "wdp/uc_parameters.h"

namespace weft::wdp {

// A port that has answered nothing for so long may be closed: a listener's (spec/wdp 4.2), and that
// of a session (spec/wdp 5.1). A peer of a session may have much to do, or be stopped; and a
// firewall that lets in nothing but answers may refuse the question as if its port were closed.
inline constexpr Duration kAsksForPort = kHandshakeTries[1];
inline constexpr Duration kAsksForPortOfSession = 2s;
// While the application makes up its mind.
inline constexpr uint32_t kWaitMs = 1000;

class Handshake {
 public:
  enum class State : uint8_t {
    idle,
    req_sent,
    req_received,
    rep_sent,
    established,
    failed,
  };
  enum class Failure : uint8_t {
    none,
    timeout,
    rejected,        // by the peer: see peer().reason
    bad_parameters,  // the peer's answer cannot be
    withdrawn,       // by us: reject()
  };

  explicit Handshake(Random& random) : random_(random) {}
  Handshake(const Handshake&) = delete;
  Handshake& operator=(const Handshake&) = delete;

  // --- active
  // `destination`: 0 is the listener on that port. `ib_style`: a queue pair, which answers without
  // a listener, and may call at the same time.
  void connect(const Offer& offer, const Path& path, Qpn destination, bool ib_style, Time now);

  // --- passive
  // About a REQ that a RequestGate has admitted. `validated`: its cookie shows that it came from
  // where it says.
  void requested(const wire::WdpCtl& req, const Path& path, size_t size, bool validated);
  // The same REQ came again.
  void requested_again(size_t size, bool validated, Time now);
  void accept(const Offer& offer, Time now);
  void reject(wire::RejReason reason, Bytes private_data);

  // --- both, of a channel
  // A REQ was answered; nothing shows yet that the peer hears the answer.
  bool answers() const { return state_ == State::rep_sent; }
  // It does not wait for that: calls the peer, too.
  void call_too(Time now);
  // Calls, and has answered a REQ besides, which is in peer().
  bool calls_too() const { return state_ == State::req_sent && answered_.has_value(); }

  // Nobody wants it any more, on whichever side. Nothing happens once it is established.
  void withdraw();
  // The same before anything of it was said.
  void forget();
  // Nobody has the port that is called: that is a REJ for want of a listener. Nothing happens once
  // somebody has answered.
  void port_closed();

  // --- what comes. Token and address were right; types REQ to WAIT.
  Result<Ok, wire::WdpDrop> received(const wire::WdpCtl& c, size_t size, Time now);
  // Valid data, or CTL of an established session: counts as RTU (spec/wdp 4.3).
  void confirmed(Time now);

  // --- what goes
  bool ready() const { return !outbox_.empty(); }
  void fill(Train& train) { outbox_.fill(train, path_); }

  Time deadline() const { return tries_.deadline(); }
  void tick(Time now);
  // Since when it calls, and the peer says nothing; never where it is not so.
  Time unanswered_since() const {
    return state_ == State::req_sent ? tries_.since() : Time::never();
  }

  State state() const { return state_; }
  Failure failure() const { return failure_; }
  bool active() const { return active_; }
  // Calls a listener, and not a queue pair.
  bool calls_listener() const { return active_ && !ib_style_; }
  // What this side said in a REJ, if it said one: each side says one at most.
  std::optional<wire::RejReason> rejected_by_us() const { return rejected_by_us_; }
  // What the peer said in its REQ, REP or REJ. Its private data stay with this object.
  const wire::WdpCtl& peer() const { return peer_; }
  const Path& path() const { return path_; }
  // From our REQ to its REP, or from our REP to what confirmed it, where neither was repeated. An
  // application may have taken its time before the REP.
  std::optional<Duration> round_trip() const { return round_trip_.value(); }
  // What both sides are agreed on; once the state is rep_sent or established.
  UcParameters parameters() const;

 private:
  using Verdict = Result<Ok, wire::WdpDrop>;

  wire::WdpCtl message(wire::CtlType type) const;
  void say(const wire::WdpCtl& c);
  void say_request(Time now);
  void say_reply(Time now);
  void remember(const wire::WdpCtl& c);
  void fail_with(Failure failure);
  Verdict on_request(const wire::WdpCtl& c, size_t size, Time now);
  Verdict on_reply(const wire::WdpCtl& c, Time now);
  Verdict on_cookie(const wire::WdpCtl& c, Time now);
  void answer_too(const wire::WdpCtl& req, Time now);
  void take_answered();
  bool is_answer(const wire::WdpCtl& c) const;
  bool possible(const wire::WdpCtl& rep) const;
  // rdma_cm's question for the QPN of a UD queue pair: an answer, and no session.
  bool resolves() const { return offer_.service == wire::CtlService::ud_resolution; }

  Random& random_;
  State state_ = State::idle;
  Failure failure_ = Failure::none;
  std::optional<wire::RejReason> rejected_by_us_;
  bool active_ = false;
  bool ib_style_ = false;
  Offer offer_;
  Path path_;
  Qpn destination_;
  Xid xid_;
  std::optional<Xid> answered_;  // calls_too(): the XID of the peer's REQ
  HandshakeCookie cookie_;
  uint32_t cookies_ = 0;
  wire::WdpCtl peer_;
  std::vector<std::byte> peer_private_data_;
  CtlOutbox outbox_;

  AddressValidation address_;
  uint8_t attempt_ = 0;  // of all REQs or REPs
  HandshakeTries tries_;
  HandshakeRoundTrip round_trip_;
};

}  // namespace weft::wdp
