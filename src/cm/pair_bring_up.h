// The bring-up by number of one queue pair, as long as it tries: what RC's and UC's have in common.
#pragma once

#include "cm/bring_up_times.h"
#include "cm/silent_ports.h"
#include "cm/start_request.h"
#include "engine/engine.h"
#include "verbs/queue_pair.h"
#include "wire/wfrc.h"

namespace weft::cm {

class PairBringUp;

// Who keeps them. Engine holder.
class PairBringUpOwner {
 public:
  virtual void bring_up_begun(verbs::QueuePair& pair, PairBringUp& bring_up) = 0;
  // It tries no more: the queue pair is connected, or never will be. `nonce`: of the Request that
  // connected it, else 0.
  virtual void bring_up_over(verbs::QueuePair& pair, uint64_t nonce) = 0;
  virtual SilentPorts& silent_ports() = 0;

 protected:
  ~PairBringUpOwner() = default;
};

// Owned by the engine. Engine holder.
class PairBringUp : public engine::EventHandler {
 public:
  // A request of the program waits for the connection: from the first one on the patience runs.
  virtual void request_waits(engine::Token& token) = 0;
  // Stops trying. It is gone afterwards.
  virtual void cancel(engine::Token& token) = 0;
  // A Request for this queue pair came, and its addresses fit. Takes it or refuses it.
  virtual void request_came(engine::Token& token, StartRequest& start,
                            const wire::Wfrc& request) = 0;

  void on_ready(engine::Token&, bool, bool) override {}
  void on_doorbell(engine::Token&) override {}
  void abandon_in_child() override {}

 protected:
  PairBringUp(PairBringUpOwner& owner, verbs::QueuePair& pair) : owner_(owner), qp_(pair) {}
  // Is it this side that connects? The one with the lower number does, or where both are equal the
  // one with the lower GID (spec/addressing 4). A queue pair that is its own peer does.
  bool begins(const Gid& own, const Gid& peer) const {
    const Qpn peers = qp_.attributes().dest_qpn;
    return qp_.number() != peers ? qp_.number() < peers : own <= peer;
  }
  // Last call to it.
  void end(engine::Token& token, uint64_t nonce = 0) {
    owner_.bring_up_over(qp_, nonce);
    token.runtime().remove(token, *this);
  }

  PairBringUpOwner& owner_;
  verbs::QueuePair& qp_;
  BringUpTimes times_;
};

}  // namespace weft::cm
