#include "sdp/rules/rules.h"

#include <fnmatch.h>

#include <algorithm>
#include <utility>

namespace weft::sdp {

const char* name(Use use) {
  switch (use) {
    case Use::sdp:
      return "sdp";
    case Use::tcp:
      return "tcp";
    case Use::both:
      return "both";
  }
  return "both";
}

bool Rule::fits(const char* program_name, const Endpoint& endpoint) const {
  return ports.contains(endpoint.port) && addresses.contains(endpoint.address) &&
         (program == "*" || fnmatch(program.c_str(), program_name, 0) == 0);
}

void Rules::add(SocketRole role, Rule rule) {
  (role == SocketRole::server ? servers_ : clients_).push_back(std::move(rule));
}

Decision Rules::decide(SocketRole role, const char* program, const Endpoint& endpoint) const {
  const auto& rules = of(role);
  const auto rule = std::find_if(rules.begin(), rules.end(),
                                 [&](const Rule& r) { return r.fits(program, endpoint); });
  if (rule == rules.end()) return {otherwise_, 0};
  return {rule->use, rule->line};
}

}  // namespace weft::sdp
