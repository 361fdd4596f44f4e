// What `weft doctor` found: one sentence each, and what to do about it.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace weft::doctor {

enum class Severity : uint8_t {
  ok,        // looked at, and good
  note,      // works, but slower or less than it could
  untested,  // asked for, and nobody knows
  problem,   // stops connections
};

struct Finding {
  Severity severity = Severity::ok;
  std::string check;     // one word, the same in every run: "libraries", "addresses"
  std::string sentence;  // what is so
  std::string remedy;    // what to do; empty when ok
};

const char* name_of(Severity severity);

// What was looked at: the last line of as_text() claims nothing of the rest.
enum class Scope : uint8_t { this_host, this_host_and_peer };

// Lines for a person, with a last one that sums up.
std::string as_text(const std::vector<Finding>& findings, Scope scope);
// {"findings": [{"severity", "check", "sentence", "remedy"}...], "problems": N, "notes": N,
//  "untested": N}
nlohmann::json as_json(const std::vector<Finding>& findings);

// Nothing stops a connection, and all that was asked for was looked at.
bool all_well(const std::vector<Finding>& findings);

}  // namespace weft::doctor
