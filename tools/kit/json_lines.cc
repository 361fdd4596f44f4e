#include "kit/json_lines.h"

#include <algorithm>

#include "kit/failure.h"

namespace weft::kit {

std::optional<nlohmann::json> JsonLines::next() {
  const size_t end = unread_.find('\n');
  if (std::min(end, unread_.size()) > longest_) throw Failure{"the other side talks too much"};
  if (end == std::string::npos) return std::nullopt;
  auto document = nlohmann::json::parse(
      unread_.begin(), unread_.begin() + static_cast<ptrdiff_t>(end), nullptr, false);
  unread_.erase(0, end + 1);
  if (document.is_discarded()) throw Failure{"the other side does not speak JSON"};
  return document;
}

std::string line_of(const nlohmann::json& document) {
  return document.dump() + "\n";
}

}  // namespace weft::kit
