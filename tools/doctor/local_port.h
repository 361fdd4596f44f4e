// Who holds a port of this host: for programs that cannot listen on it (EADDRINUSE).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/finding.h"

namespace weft::doctor {

// A socket that keeps others from listening on a port.
struct PortHolder {
  std::string protocol;  // "TCP", "UDP"
  std::string address;   // that it is bound to, as "0.0.0.0"
  uint32_t user = 0;
  uint64_t inode = 0;   // 0: no process has it any more
  std::string process;  // "1234 (rping)"; empty where /proc does not tell this user
};

// Those of `port` in the text of /proc/net/tcp, tcp6, udp or udp6 (proc(5)): TCP sockets that
// listen, and UDP sockets. Lines that do not parse are passed over. Pure.
std::vector<PortHolder> holders_in(std::string_view table, const std::string& protocol,
                                   uint16_t port);

// The holders of `port` in this network namespace, with their processes as far as /proc tells.
std::vector<PortHolder> holders_of(uint16_t port);

// A problem where somebody holds it. Pure.
Finding judge_local_port(uint16_t port, const std::vector<PortHolder>& holders);
inline Finding check_local_port(uint16_t port) {
  return judge_local_port(port, holders_of(port));
}

}  // namespace weft::doctor
