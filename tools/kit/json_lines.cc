#include "kit/json_lines.h"

#include <algorithm>

#include "kit/failure.h"
#include "kit/json_text.h"

namespace weft::kit {
namespace {

constexpr int kDeepest = 16;  // more than any document of ours nests

bool not_too_deep(int depth, nlohmann::json::parse_event_t, nlohmann::json&) {
  if (depth > kDeepest) throw Failure{"the other side nests its JSON too deeply"};
  return true;
}

}  // namespace

std::optional<nlohmann::json> JsonLines::next() {
  const size_t end = unread_.find('\n');
  if (std::min(end, unread_.size()) > longest_) throw Failure{"the other side talks too much"};
  if (end == std::string::npos) return std::nullopt;
  const std::string line = unread_.substr(0, end);
  unread_.erase(0, end + 1);
  // nlohmann copies and prints nested values by recursion, so a deep one would end the process.
  auto document = nlohmann::json::parse(line, not_too_deep, false);
  if (document.is_discarded()) throw Failure{"the other side does not speak JSON"};
  return document;
}

std::string line_of(const nlohmann::json& document) {
  return text_of(document) + "\n";
}

}  // namespace weft::kit
