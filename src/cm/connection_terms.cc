#include "cm/connection_terms.h"

#include <algorithm>
#include <utility>

#include "config/options.h"
#include "device/device.h"

namespace weft::cm {

uint8_t reads_told(std::optional<uint16_t> told) {
  return static_cast<uint8_t>(
      std::min<uint32_t>(told.value_or(device::kMaxReads), device::kMaxReads));
}

mpa::Offer stream_offer(const ConnectionParameters& parameters) {
  const config::Options& o = config::options();
  return {.crc = o.crc,
          .extension = o.ext != config::Extensions::off,
          .peer_to_peer = o.p2p,
          .ird = parameters.responder_resources,
          .ord = parameters.initiator_depth};
}

wdp::Offer session_offer(const verbs::DatagramCaller& caller, const drive::DatagramDriver& driver,
                         const wdp::Path& path, const ConnectionParameters& parameters,
                         std::optional<uint8_t> type_of_service) {
  wdp::Offer o = caller.offer(driver, path);
  o.traffic_class = type_of_service.value_or(0);
  o.ird = parameters.responder_resources;
  o.ord = parameters.initiator_depth;
  o.private_data = parameters.private_data;
  return o;
}

void agree_on(ConnectionParameters& parameters, uint32_t ird, uint32_t ord) {
  parameters.responder_resources = static_cast<uint8_t>(std::min(ird, device::kMaxReads));
  parameters.initiator_depth = static_cast<uint8_t>(std::min(ord, device::kMaxReads));
}

ConnectionParameters agreed(const ConnectionParameters& parameters) {
  return {.responder_resources = parameters.responder_resources,
          .initiator_depth = parameters.initiator_depth,
          .retry_count = parameters.retry_count,
          .rnr_retry_count = parameters.rnr_retry_count};
}

ConnectionParameters take_answer(ConnectionParameters& parameters, Started& started) {
  agree_on(parameters, started.parameters.ird, started.parameters.ord);
  ConnectionParameters told = agreed(parameters);
  told.private_data = std::move(started.private_data);
  if (const auto ord = started.parameters.peer_ord) told.responder_resources = reads_told(ord);
  return told;
}

ConnectionParameters take_answer(ConnectionParameters& parameters,
                                 const wdp::UcConnection& connection, bool active) {
  const wdp::UcParameters& session = connection.session()->parameters();
  agree_on(parameters, session.ird, session.ord);
  ConnectionParameters told = agreed(parameters);
  told.qpn = session.peer_qpn;
  if (const wdp::Handshake* handshake = connection.handshake(); active && handshake != nullptr) {
    const wire::WdpCtl& rep = handshake->peer();
    told.private_data.assign(rep.private_data.begin(), rep.private_data.end());
    told.responder_resources = reads_told(rep.ord);
  }
  return told;
}

}  // namespace weft::cm
