// The rules of this process, from its environment and the file that it names (docs/sdp-rules.md).
#pragma once

#include <string>

#include "sdp/rules/parse.h"

namespace weft::sdp {

struct RulesEnvironment {
  static constexpr const char* kDefaultFile = "/etc/libsdp.conf";

  std::string file = kDefaultFile;
  bool file_is_named = false;  // somebody asked for this file, so that it has to be there
  bool always_sdp = false;

  // LIBSDP_CONFIG_FILE, SIMPLE_LIBSDP and ALWAYS_USE_SDP.
  static RulesEnvironment of_process();
};

struct LoadedRules {
  Configuration configuration;
  std::string file;  // empty if none was read
};

// A file that cannot be read is a complaint of line 0, and no rules.
LoadedRules load_rules(const RulesEnvironment& environment);

// "FILE:LINE: text", or "FILE: text" for line 0.
std::string sentence(const std::string& file, const Complaint& complaint);

}  // namespace weft::sdp
