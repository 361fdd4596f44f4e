#include "shared/agreement.h"

#include "config/options.h"
#include "port/route.h"

namespace weft::shared {
namespace {

using stats::SameHostRefusal;

// Nothing is on its way before it, so the socket takes it, or is broken and says so later.
void say(const port::TcpStream& tcp, wire::HostWay way) {
  const auto byte = static_cast<std::byte>(way);
  const IoVec one{const_cast<std::byte*>(&byte), 1};
  (void)tcp.send({&one, 1});
}

}  // namespace

bool may_share(const port::TcpStream& tcp) {
  return config::options().same_host != config::SameHost::off && !tcp.hooked() &&
         port::check_local(tcp.peer()) == 0;
}

std::optional<Offered> offer(const port::TcpStream& tcp, stats::EngineCounters& counters) {
  const auto cookie = tcp.network_namespace();
  if (!cookie) {
    stats::count(counters.same_host_refused, SameHostRefusal::network_namespace);
    return {};
  }
  auto segment = Segment::make();
  if (!segment.ok()) {
    stats::count(counters.same_host_refused, SameHostRefusal::no_segment);
    return {};
  }
  const wire::HostOffer offer = segment->offer(*cookie);
  return Offered{.segment = std::move(*segment), .offer = offer};
}

std::optional<Segment> take(const wire::HostOffer& offer, const port::TcpStream& tcp,
                            stats::EngineCounters& counters) {
  const auto cookie = tcp.network_namespace();
  Result<Segment, SameHostRefusal> segment =
      cookie ? Segment::join(offer, *cookie) : fail(SameHostRefusal::network_namespace);
  if (segment.ok()) {
    say(tcp, wire::HostWay::memory);
    return std::move(*segment);
  }
  stats::count(counters.same_host_refused, segment.error());
  decline(tcp);
  return {};
}

void decline(const port::TcpStream& tcp) {
  say(tcp, wire::HostWay::tcp);
}

}  // namespace weft::shared
