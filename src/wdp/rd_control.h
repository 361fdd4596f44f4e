// CTL of a channel whose peer is known (spec/wdp-rd 2.4, 5.3, 5.5, 7.4): questions whether the peer
// is there, probes of the path, and the goodbye. What the peer asks is answered here.
#pragma once

#include <vector>

#include "wdp/ctl_outbox.h"
#include "wdp/rd_goodbye.h"
#include "wdp/rd_presence.h"
#include "wdp/rd_traffic.h"

namespace weft::wdp {

// Of one channel. Engine holder only.
class RdControl {
 public:
  // Both are kept.
  RdControl(const RdOpening& opening, RdTraffic& traffic) : opening_(opening), traffic_(traffic) {}
  RdControl(const RdControl&) = delete;
  RdControl& operator=(const RdControl&) = delete;

  RdPresence& presence() { return presence_; }
  const RdPresence& presence() const { return presence_; }
  RdGoodbye& goodbye() { return goodbye_; }
  const RdGoodbye& goodbye() const { return goodbye_; }

  // --- what comes. Token and address were right; types from KA on
  enum class Event : uint8_t {
    none,
    peer_leaves,   // DREQ. peer_left() answers it
    peer_forgets,  // DREP: it knows no such channel, or no more
  };
  Result<Event, wire::WdpDrop> received(const wire::WdpCtl& c, Time now);
  // The channel has ended at this side, and is there for what waits for receives alone: as a port
  // that does not know the token (spec/wdp-rd 2.4).
  Result<Ok, wire::WdpDrop> disown(const wire::WdpCommon& common, Bytes datagram);

  // --- what goes
  void say_dreq(Time now);
  void peer_left();
  void ask();
  // A question, to be sent from another port.
  std::vector<std::byte> question() const;
  bool empty() const { return outbox_.empty(); }
  // Nothing is to be said, nor waited for.
  bool may_rest() const {
    return empty() && presence_.may_rest() && !goodbye_.waits() && goodbye_.deadline().is_never();
  }
  bool ready(Time now) const;
  // One of those that wait, or is due, in a train of its own; nothing where there is none.
  void fill(Train& train, Time now);

  // --- time
  Time deadline() const;
  // True: nobody has answered the last DREQ.
  bool tick_goodbye(Time now);
  // late: the peer has not got in time what it lacks, and the goodbye is due. gone: it does not
  // answer.
  enum class Due : uint8_t { nothing, late, gone };
  // While the channel is open.
  Due tick(Time now);

 private:
  wire::WdpCtl message(wire::CtlType type) const;
  void answer(const wire::WdpCtl& c, wire::CtlType type);
  void say_probe(Time now);

  const RdOpening& opening_;
  RdTraffic& traffic_;
  CtlOutbox outbox_;
  RdPresence presence_;
  RdGoodbye goodbye_;
};

}  // namespace weft::wdp
