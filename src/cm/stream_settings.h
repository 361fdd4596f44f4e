// The settings of a stream that come from the start-up and the options.
#pragma once

#include <optional>

#include "rdmap/limits.h"
#include "verbs/queue_pair.h"
#include "wdp/endpoint.h"
#include "wire/rd_offer.h"

namespace weft::cm {

rdmap::StreamConfig stream_settings(const mpa::Parameters& parameters, bool initiator);

// Where this queue pair would have datagrams; nothing where the options want TCP.
std::optional<wire::RdOffer> rd_offer(Qpn qpn);
// The same, with what the interface of that way takes, for a start through a channel.
std::optional<wire::RdOffer> rd_offer(const verbs::QueuePair& pair, const wdp::Path& path);

}  // namespace weft::cm
