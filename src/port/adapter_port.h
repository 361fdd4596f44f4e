// Claims one port number on UDP and TCP (spec/addressing 2.2). The UDP bind is the lock: without
// SO_REUSEADDR a second process cannot have it.
#pragma once

#include "port/tcp_listener.h"

namespace weft::port {

struct PortClaim {
  uint16_t number = 0;
  Fd udp;
  TcpListener tcp;  // listening
};

// Tries numbers that the kernel proposes until one is free on both and fit for a QPN: not below
// 1024, not 24576 to 32767, not 65535. With a `wish` that one or none.
Result<PortClaim, SystemError> claim_port(uint16_t wish = 0);

}  // namespace weft::port
