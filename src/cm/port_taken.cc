#include "cm/port_taken.h"

#include <string>

#include "base/log.h"
#include "port/socket_owner.h"

namespace weft::cm {
namespace {

std::string holder(const port::Address& at) {
  const auto owner = port::tcp_owner(at, {}, true);
  if (!owner.ok() || !*owner || !(*owner)->held()) return "another socket";
  if (const auto fd = port::own_descriptor(**owner)) {
    return "a socket of this process (descriptor " + std::to_string(*fd) + ")";
  }
  return "a socket of user " + std::to_string((*owner)->user) + " (ss -tlnp tells which)";
}

}  // namespace

void say_tcp_port_taken(const port::Address& at) {
  WEFT_LOG_REFUSAL(
      "rdma_cm: TCP port %u is taken, by %s. weft's rdma_cm is found by TCP, so a number serves "
      "either rdma_cm or TCP: give the server another port for one of the two",
      at.port(), holder(at).c_str());
}

void say_udp_port_taken(const port::Address& at) {
  WEFT_LOG_REFUSAL(
      "rdma_cm: UDP port %u is taken, by another socket (ss -ulnp tells which). weft's RDMA_PS_UDP "
      "is found by UDP, so a number serves either of them: choose another port for one of the two",
      at.port());
}

}  // namespace weft::cm
