#include "sdp/sockets/shown_name.h"

#include "sdp/rules/address.h"
#include "sdp/sockets/real.h"

namespace weft::sdp {

StatName shown_name(const Address& address) {
  const auto endpoint = Endpoint::from(&address.any, address.size());
  return endpoint ? StatName{endpoint->address.raw, endpoint->port} : StatName{};
}

StatName shown_name_of(int fd) {
  Address own{};
  socklen_t size = sizeof own;
  if (real().getsockname(fd, &own.any, &size) != 0) return {};
  return shown_name(own);
}

std::string to_string(const Address& address) {
  const auto endpoint = Endpoint::from(&address.any, address.size());
  return endpoint ? endpoint->to_string() : "?";
}

}  // namespace weft::sdp
