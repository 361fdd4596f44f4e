#include "measure/network.h"

#include <fmt/format.h>

#include <array>
#include <sstream>

#include "measure/files.h"

namespace weft::measure {

std::optional<Interface> parse_interface(const std::string& text) {
  // The name of an interface has no colon.
  const size_t colon = text.find(':');
  const std::string way = colon == std::string::npos ? "rx" : text.substr(colon + 1);
  if (colon == 0 || text.empty() || (way != "rx" && way != "tx")) return std::nullopt;
  return Interface{.name = text.substr(0, colon), .sent = way == "tx"};
}

Measured<uint64_t> interface_bytes(const std::string& proc, const Interface& interface) {
  // Not those of /sys, which belong to the namespace that it was mounted in.
  const auto text = read_text(proc + "/self/net/dev");
  if (!text) return fail(Unmeasured{text.error().what, "mount /proc"});
  std::istringstream in{*text};
  for (std::string line; std::getline(in, line);) {
    const size_t colon = line.find(':');
    const size_t begin = line.find_first_not_of(' ');
    if (colon == std::string::npos || line.substr(begin, colon - begin) != interface.name) continue;
    // Eight numbers of what arrived, then eight of what left; bytes come first.
    std::istringstream words{line.substr(colon + 1)};
    std::array<uint64_t, 9> numbers{};
    for (uint64_t& number : numbers) words >> number;
    if (words) return interface.sent ? numbers[8] : numbers[0];
  }
  return fail(Unmeasured{fmt::format("there is no interface {}", interface.name),
                         "see 'ip link' for those of this network namespace"});
}

}  // namespace weft::measure
