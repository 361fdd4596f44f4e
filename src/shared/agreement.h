// Whether the two ends of a TCP connection share memory: what each side has to do for it while MPA
// starts up (spec/same-host 2).
#pragma once

#include <optional>

#include "port/tcp_stream.h"
#include "shared/segment.h"
#include "stats/blocks.h"

namespace weft::shared {

// What this side can tell of a connection that is established, before it asks or offers.
struct Outlook {
  bool peer_is_here = false;                      // it has an address of this host
  std::optional<stats::SameHostRefusal> against;  // the options of this process
  bool may_share() const { return peer_is_here && !against; }
};
Outlook outlook(const port::TcpStream& tcp);
// Counts why a peer on this host is spoken to by TCP, where there was no offer. `extension`: the
// two have agreed on weft's.
void count_unoffered(const Outlook& outlook, bool extension, stats::EngineCounters& counters);

// The Responder's: memory for the connection, and what the Reply says of it. Nothing, and counted,
// where the kernel gives none.
struct Offered {
  Segment segment;
  wire::HostOffer offer;
};
std::optional<Offered> offer(const port::TcpStream& tcp, stats::EngineCounters& counters);

// The Initiator's: takes the offer where it can, and says on the connection whether it has
// (spec/same-host 2.2). Nothing else has been sent behind the Request. Nothing, and counted: it
// stays with TCP.
std::optional<Segment> take(const wire::HostOffer& offer, const port::TcpStream& tcp,
                            stats::EngineCounters& counters);
// The same where it does not want to.
void decline(const port::TcpStream& tcp);

}  // namespace weft::shared
