#include "wire/wdp_messages.h"

#include <cstdio>

namespace weft::wire {

std::string WdpReadRange::to_string() const {
  char text[64];
  std::snprintf(text, sizeof text, "%u bytes, attempt %u", length, attempt);
  return text;
}

const char* to_string(WdpResponse::Code code) {
  switch (code) {
    case WdpResponse::Code::ack:
      return "ACK";
    case WdpResponse::Code::rnr:
      return "receiver not ready";
    case WdpResponse::Code::not_ready:
      return "queue pair not ready";
    case WdpResponse::Code::length:
      return "length error";
    case WdpResponse::Code::access:
      return "access error";
    case WdpResponse::Code::operation:
      return "operation error";
    case WdpResponse::Code::invalid_flow:
      return "invalid flow";
    case WdpResponse::Code::flush:
      return "queue pair in error";
    case WdpResponse::Code::key:
      return "wrong Q_Key";
    case WdpResponse::Code::ready:
      return "receiver ready again";
  }
  return "unknown code";
}

std::string WdpResponse::to_string() const {
  char text[128];
  std::snprintf(text, sizeof text, "RESP %s: from %u to %u MSN %u delay %u us aux 0x%08x",
                wire::to_string(code), ridx, qidx, msn.value(), delay_us(), aux);
  return text;
}

}  // namespace weft::wire
