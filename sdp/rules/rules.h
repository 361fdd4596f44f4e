// Which sockets may go by SDP. A configuration makes two lists of rules, for sockets that listen
// and for sockets that connect; the first one that fits decides (docs/sdp-rules.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sdp/rules/address.h"

namespace weft::sdp {

enum class Use : uint8_t {
  sdp,   // SDP alone
  tcp,   // TCP alone
  both,  // a server hears both; a client proves SDP first and goes on by TCP where there is none
};
const char* name(Use use);

enum class SocketRole : uint8_t { server, client };

struct Ports {
  uint16_t first = 0;
  uint16_t last = 65535;

  bool contains(uint16_t port) const { return first <= port && port <= last; }
  friend bool operator==(const Ports&, const Ports&) = default;
};

struct Rule {
  Use use = Use::both;
  uint32_t line = 0;          // of the configuration
  std::string program = "*";  // a pattern of fnmatch(3)
  AddressRange addresses;     // a server's own, a client's destination
  Ports ports;

  bool fits(const char* program_name, const Endpoint& endpoint) const;
};

struct Decision {
  Use use = Use::both;
  uint32_t line = 0;  // of the rule that decided; 0: none did
  friend bool operator==(const Decision&, const Decision&) = default;
};

class Rules {
 public:
  // What decides where no rule fits.
  explicit Rules(Use otherwise = Use::both) : otherwise_(otherwise) {}

  void add(SocketRole role, Rule rule);
  // `program` is the last part of argv[0]. For a server the address that it is bound to, which may
  // be 0.0.0.0 or ::; for a client the one that it connects to. Takes no memory.
  Decision decide(SocketRole role, const char* program, const Endpoint& endpoint) const;
  const std::vector<Rule>& of(SocketRole role) const {
    return role == SocketRole::server ? servers_ : clients_;
  }

 private:
  std::vector<Rule> servers_;
  std::vector<Rule> clients_;
  Use otherwise_;
};

}  // namespace weft::sdp
