// One port number on TCP and UDP that the kernel chooses, for a listener of rdma_cm (spec/wdp 4.9).
#pragma once

#include "port/tcp_listener.h"

namespace weft::port {

struct BothPorts {
  Fd udp;
  TcpListener tcp;  // bound, not listening
};

// `at` has port 0; families as bind_udp() has them. UDP is the lock, as in claim_port(): the kernel
// proposes a number that is free there, and numbers that TCP refuses are held until another one is
// found. Errors: EADDRINUSE after kMostProposals; those of socket(2) and bind(2).
inline constexpr int kMostProposals = 64;
Result<BothPorts, SystemError> bind_both(const Address& at, bool only_ipv6 = false);

}  // namespace weft::port
