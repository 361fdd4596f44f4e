// What a side of WDP's handshake says of itself.
#pragma once

#include <vector>

#include "wdp/limits.h"
#include "wire/wdp_ctl.h"

namespace weft::wdp {

struct Offer {
  wire::CtlService service = wire::CtlService::uc;
  Qpn own_qpn;
  SessionToken token;  // fresh, and not 0
  Psn first_psn;       // random; of ud_resolution's REP: the Q_Key
  uint16_t ird = 0;
  uint16_t ord = 0;
  uint16_t max_payload = 1472;  // UDP payload that it can receive, and wants to send
  wire::CtlFeatures features;
  // How the side that answers sends to the one that asked; who asks has it in its path.
  uint8_t traffic_class = 0;
  uint8_t hop_limit = 0;
  double rate = 0;
  // Of UcParameters; the peer does not hear of them.
  size_t receive_buffer = kDatagramBuffer;
  uint8_t retry_count = 7;
  uint64_t window = 0;
  bool close_by = false;  // whatever the handshake takes: the peer is on this host
  bool probes_path = false;
  std::vector<std::byte> private_data;
  std::vector<std::byte> tlvs;  // of the REQ
};

}  // namespace weft::wdp
