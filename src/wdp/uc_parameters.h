// What a UC session has to know: the outcome of the handshake, or the configuration of a static
// session (spec/wdp 4.7).
#pragma once

#include <optional>

#include "base/adapter_ports.h"
#include "base/types.h"
#include "wdp/endpoint.h"
#include "wdp/limits.h"
#include "wire/wdp_common.h"
#include "wire/wdp_data.h"

namespace weft::wdp {

struct UcParameters {
  // What we put into datagrams, and what the peer puts in.
  Path path;                // to the peer
  SessionToken peer_token;  // into every datagram that we send
  SessionToken own_token;   // in every datagram that is for us
  Qpn own_qpn;
  Qpn peer_qpn;
  bool from_listener = false;  // a didx of 0 is taken, too (spec/wdp-uc 3.1)

  Psn first_psn;                      // that we send
  std::optional<Psn> peer_first_psn;  // none in a static session: the first that comes begins

  bool crc = false;  // of data, both ways
  bool immediate = true;
  bool reads = true;
  uint16_t ird = 0;
  uint16_t ord = 0;

  // UDP payload that fits the path and the peer.
  size_t max_payload = 1472;
  // What fits into the own socket's buffer: Reads keep a quarter of it under way at most
  // (spec/wdp-uc 5.4).
  size_t receive_buffer = kDatagramBuffer;
  uint8_t retry_count = 7;  // of a Read: expiries that bring nothing
  // What may be under way of our Sends and Writes to a peer close by (send_window.h); 0: anything.
  uint64_t window = 0;
  bool close_by = true;  // as far as the handshake shows
  Duration rtt{0};       // seen in the handshake; 0: not known

  // Find out whether the path carries max_payload, and settle for less where it does not.
  bool probes_path = false;

  // No CTL in either direction, and no Reads: spec/wdp-uc 6.
  bool is_static = false;

  uint8_t own_index() const { return index_of(own_qpn); }
  // didx that we send: 0 towards a QPN that belongs to another socket of the peer's. That is only
  // where we called its listener: who called ours did it from its queue pair's own socket, whatever
  // a NAT has made of the port.
  uint8_t peer_index() const {
    const bool own_socket = from_listener || port_of(peer_qpn) == path.to.port;
    return own_socket ? index_of(peer_qpn) : wire::kPortIndex;
  }
  uint16_t stride() const { return wire::wdp_stride(max_payload); }
};

}  // namespace weft::wdp
