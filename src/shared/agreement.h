// Whether the two ends of a TCP connection share memory: what each side has to do for it while MPA
// starts up (spec/same-host 2).
#pragma once

#include <optional>

#include "port/tcp_stream.h"
#include "shared/segment.h"
#include "stats/blocks.h"

namespace weft::shared {

// May this connection, which is established? Not where the option same_host is off, where the peer
// has an address of another host, and where it is recorded or disturbed what passes over TCP.
bool may_share(const port::TcpStream& tcp);

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
