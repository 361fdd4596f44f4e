// How a channel comes to stand (spec/wdp-rd 2): its handshake, and what that has told of the peer.
//
//   call()   ─► REQ ─REP───────────────────────────────► opens
//   answer() ─► REP ─► the peer is known ─RTU, data─────► opens
//   both: call_too(), a REQ that crosses                  or refused, or failed
#pragma once

#include <memory>
#include <utility>

#include "wdp/handshake.h"
#include "wdp/rd_datagram.h"

namespace weft::wdp {

// What the handshake has told of the peer, and what was agreed on.
struct RdPeer {
  SessionToken token;  // in all that is sent to it
  Qpn own_port;        // as a QPN of index 0; of this end
  Qpn port;            // of the peer
  Csn first;           // of its datagrams
  RdTerms terms;
  Duration round_trip = Duration::max();  // no longer than this
};

// Of one channel. Engine holder only.
class RdOpening {
 public:
  // The reference is kept.
  explicit RdOpening(Random& random)
      : random_(random), handshake_(std::make_unique<Handshake>(random)) {}

  // What a call has changed; look() tells once.
  enum class News : uint8_t {
    none,
    peer_known,  // peer() is good, and what it sends may be taken. Perhaps another one opens
    opens,       // both may send
    refused,     // the peer has no channels
    given_up,    // the peer has, and has taken its answer back: it may be called again
    failed,      // nobody answers
  };
  News look();

  // --- each begins it, once
  void call(const Offer& offer, const Path& path, Qpn destination, Time now);
  void answer(const wire::WdpCtl& req, const Path& path, size_t size, bool validated,
              const Offer& offer, Time now);

  // A channel that was at rest, of whose peer that is known.
  void wake(const Path& path, SessionToken own, const RdPeer& peer);
  // Whether the peer knows it yet is not: a REQ goes before what is sent (spec/wdp-rd 2.5). A peer
  // that does says nothing to it.
  void call_again(const Offer& offer, Time now);
  // And the peer has said nothing yet.
  bool resumes() const { return resumes_; }

  // --- what comes
  // A REQ from the peer's socket; `size` and `validated`: as for the handshake. None: it is of
  // another life of the peer's, or of a stranger.
  using Verdict = Result<Ok, wire::WdpDrop>;
  std::optional<Verdict> requested_again(const wire::WdpCtl& req, size_t size, bool validated,
                                         Time now);
  // Any other type up to WAIT.
  Verdict received(const wire::WdpCtl& c, size_t size, Time now);
  // Something that only who is set up can say.
  void confirmed(Time now) {
    if (handshake_) handshake_->confirmed(now);
    if (std::exchange(resumes_, false)) over_ = true;
  }
  // A channel that stands does not need the handshake.
  void let_go() {
    if (over_) handshake_.reset();
  }

  // --- what this side says
  // Who has answered a REQ, and has something to say, does not wait for the peer.
  void call_too(Time now) {
    if (handshake_ && handshake_->answers()) handshake_->call_too(now);
  }
  bool ready() const { return handshake_ && handshake_->ready(); }
  void fill(Train& train) { handshake_->fill(train); }
  // The channel is not wanted any more. Its peer is told, if there is memory for it; forget():
  // before it has heard anything. No call has news after these.
  void withdraw();
  void forget();

  Time deadline() const { return handshake_ ? handshake_->deadline() : Time::never(); }
  void tick(Time now) {
    if (handshake_) handshake_->tick(now);
  }

  // Null once both sides have heard that the channel stands.
  const Handshake* handshake() const { return handshake_.get(); }
  const Path& path() const { return path_; }
  SessionToken token() const { return token_; }
  // Once known.
  const RdPeer& peer() const { return peer_; }

 private:
  Random& random_;
  std::unique_ptr<Handshake> handshake_;
  Path path_;
  SessionToken token_;
  RdPeer peer_;
  bool known_ = false;
  bool over_ = false;
  bool resumes_ = false;
};

}  // namespace weft::wdp
