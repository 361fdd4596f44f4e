#include "shared/agreement.h"

#include "config/options.h"
#include "port/route.h"

namespace weft::shared {
namespace {

using stats::SameHostRefusal;

// Nothing is on its way before it, so the socket takes it, or is broken and says so later.
void say(const port::TcpStream& tcp, wire::HostCarrier carrier) {
  const auto byte = static_cast<std::byte>(carrier);
  const IoVec one{const_cast<std::byte*>(&byte), 1};
  (void)tcp.send({&one, 1});
}

}  // namespace

Outlook outlook(const port::TcpStream& tcp) {
  Outlook all{.peer_is_here = port::check_local(tcp.peer()) == 0, .against = {}};
  if (config::options().same_host == config::SameHost::off) {
    all.against = SameHostRefusal::off;
  } else if (tcp.recorded()) {
    all.against = SameHostRefusal::recorded;
  } else if (tcp.hooked()) {
    all.against = SameHostRefusal::disturbed;
  }
  return all;
}

void count_unoffered(const Outlook& outlook, bool extension, stats::EngineCounters& counters) {
  if (!outlook.peer_is_here) return;
  const auto of_the_peer = extension ? SameHostRefusal::by_peer : SameHostRefusal::not_weft;
  stats::count(counters.same_host_refused, outlook.against.value_or(of_the_peer));
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
  segment->belongs_to(tcp);
  const wire::HostOffer offer = segment->offer(*cookie);
  return Offered{.segment = std::move(*segment), .offer = offer};
}

std::optional<Segment> take(const wire::HostOffer& offer, const port::TcpStream& tcp,
                            stats::EngineCounters& counters) {
  const auto cookie = tcp.network_namespace();
  Result<Segment, SameHostRefusal> segment =
      cookie ? Segment::join(offer, *cookie) : fail(SameHostRefusal::network_namespace);
  if (segment.ok()) {
    segment->belongs_to(tcp);
    say(tcp, wire::HostCarrier::memory);
    return std::move(*segment);
  }
  stats::count(counters.same_host_refused, segment.error());
  decline(tcp);
  return {};
}

void decline(const port::TcpStream& tcp) {
  say(tcp, wire::HostCarrier::tcp);
}

}  // namespace weft::shared
