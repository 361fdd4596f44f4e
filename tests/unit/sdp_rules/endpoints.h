// Endpoints as tests write them.
#pragma once

#include <arpa/inet.h>

#include <cstring>

#include "sdp/rules/address.h"

namespace weft::sdp {

inline Endpoint at(const char* address, uint16_t port = 0) {
  Endpoint e{.address = {}, .port = port};
  in_addr ipv4{};
  if (inet_pton(AF_INET, address, &ipv4) == 1) {
    e.address = IpAddress::from_ipv4(ntohl(ipv4.s_addr));
  } else {
    inet_pton(AF_INET6, address, e.address.raw.data());
  }
  return e;
}

}  // namespace weft::sdp
