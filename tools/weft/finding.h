// What `weft doctor` found: one sentence each, and what to do about it.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace weft::tools {

enum class Severity : uint8_t {
  ok,       // looked at, and good
  note,     // works, but slower or less than it could
  problem,  // stops connections
};

struct Finding {
  Severity severity = Severity::ok;
  std::string check;     // one word, the same in every run: "libraries", "addresses"
  std::string sentence;  // what is so
  std::string remedy;    // what to do; empty when ok
};

const char* name_of(Severity severity);

// Lines for a person, with a last one that sums up.
std::string as_text(const std::vector<Finding>& findings);
// {"findings": [{"severity", "check", "sentence", "remedy"}...], "problems": N, "notes": N}
nlohmann::json as_json(const std::vector<Finding>& findings);

bool has_problem(const std::vector<Finding>& findings);

}  // namespace weft::tools
