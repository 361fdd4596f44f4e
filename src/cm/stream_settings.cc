#include "cm/stream_settings.h"

#include "base/random.h"
#include "config/options.h"
#include "verbs/address_handle.h"

namespace weft::cm {

rdmap::StreamConfig stream_settings(const mpa::Parameters& parameters, bool initiator) {
  const config::Options& o = config::options();
  return {.mpa = parameters,
          .initiator = initiator,
          .llp_completion = o.completion == config::CompletionRule::llp,
          .big_fpdu = o.big_fpdu,
          .rnr_wait = o.rnr_wait,
          .responder_wait = o.responder_wait};
}

std::optional<wire::RdOffer> rd_offer(Qpn qpn) {
  if (config::options().rc != config::Rc::udp) return {};
  SystemRandom random;
  return wire::RdOffer{.qpn = qpn, .session = static_cast<uint32_t>(random.next())};
}

std::optional<wire::RdOffer> rd_offer(const verbs::QueuePair& pair, const wdp::Path& path) {
  auto offer = rd_offer(pair.number());
  if (offer) offer->room = static_cast<uint16_t>(verbs::datagram_room(pair.context(), path));
  return offer;
}

}  // namespace weft::cm
