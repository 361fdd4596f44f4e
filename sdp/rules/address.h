// Addresses of sockets as rules see them: IPv4 and IPv6 are one kind, so that an IPv6 socket that
// speaks IPv4 (::ffff:192.0.2.1) meets the same rules as one of IPv4.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/gid.h"

namespace weft::sdp {

using IpAddress = Gid;

struct Endpoint {
  IpAddress address;
  uint16_t port = 0;

  // Nothing for another family than IPv4 and IPv6, and for too few bytes.
  static std::optional<Endpoint> from(const sockaddr* address, socklen_t size);
  // "192.0.2.1:5001", "[2001:db8::1]:5001".
  std::string to_string() const;
};

// The addresses whose first bits are those of a prefix.
class AddressRange {
 public:
  // All addresses, of both kinds.
  AddressRange() = default;
  // "192.0.2.1", "192.0.2.0/24", "2001:db8::/32" or "*". Bits behind the prefix mean nothing. A
  // prefix of IPv4 holds addresses of IPv4 alone. Nothing for all else.
  static std::optional<AddressRange> parse(std::string_view text);

  bool contains(const IpAddress& address) const;
  // In a form that parse() reads.
  std::string to_string() const;
  friend bool operator==(const AddressRange&, const AddressRange&) = default;

 private:
  IpAddress first_;     // the bits behind the prefix are 0
  uint8_t prefix_ = 0;  // of 128 bits, for IPv4, too
};

}  // namespace weft::sdp
