// The text of libsdp.conf (docs/sdp-rules.md).

#include <string_view>

#include "fuzz/support/check.h"
#include "sdp/rules/parse.h"

namespace {

using namespace weft;
using namespace weft::sdp;

// A rule, written again, is the same rule.
void check_rule(SocketRole role, const Rule& rule) {
  FUZZ_CHECK(rule.line > 0 && rule.ports.first <= rule.ports.last);
  const std::string text = std::string{"use "} + name(rule.use) +
                           (role == SocketRole::server ? " server " : " client ") + rule.program +
                           " " + rule.addresses.to_string() + ":" +
                           std::to_string(rule.ports.first) + "-" + std::to_string(rule.ports.last);
  const Configuration again = parse(text);
  FUZZ_CHECK(again.complaints.empty());
  const auto& rules = again.rules.of(role);
  FUZZ_CHECK(rules.size() == 1);
  FUZZ_CHECK(rules[0].use == rule.use && rules[0].program == rule.program);
  FUZZ_CHECK(rules[0].addresses == rule.addresses && rules[0].ports == rule.ports);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto exact = fuzz::exact(fuzz::as_bytes(data, size), size);
  const Configuration c = parse({reinterpret_cast<const char*>(exact.data()), exact.size()});
  FUZZ_CHECK(c.complaints.size() <= kMostComplaints + 1);
  for (const Complaint& complaint : c.complaints) {
    FUZZ_CHECK(complaint.line > 0);
    FUZZ_CHECK(std::all_of(complaint.text.begin(), complaint.text.end(),
                           [](char sign) { return sign >= ' ' && sign <= '~'; }));
  }
  FUZZ_CHECK(c.log.min_level >= LogSettings::kLeastLevel &&
             c.log.min_level <= LogSettings::kErrors);
  for (const auto role : {SocketRole::server, SocketRole::client}) {
    for (const Rule& rule : c.rules.of(role)) check_rule(role, rule);
    const Decision d = c.rules.decide(role, "prog", {IpAddress::from_ipv4(0x7f000001), 80});
    FUZZ_CHECK(d.line != 0 || d.use == Use::both);
  }
  return 0;
}
