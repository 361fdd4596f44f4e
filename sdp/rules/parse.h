// The text of libsdp.conf (docs/sdp-rules.md).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sdp/rules/rules.h"

namespace weft::sdp {

// Where the library's own sentences go, and which.
struct LogSettings {
  enum class Destination : uint8_t { standard_error, syslog, file };
  static constexpr int kLeastLevel = 1;  // everything
  static constexpr int kErrors = 9;
  static constexpr int kWarnings = 8;

  Destination destination = Destination::standard_error;
  std::string file;           // of Destination::file, as it stands in the configuration
  int min_level = kWarnings;  // what is below it is not said
};

// A line that has no effect.
struct Complaint {
  uint32_t line = 0;
  std::string text;  // a sentence: what is wrong, and what to write
};

struct Configuration {
  Rules rules;
  LogSettings log;
  // Patterns of programs whose connections a process of its own makes (keep). Without any: ssh.
  std::vector<std::string> kept;
  bool keeps(const char* program) const;
  std::vector<Complaint> complaints;  // at most kMostComplaints; the last one says so
};

inline constexpr size_t kMostComplaints = 10;

// Pure. A line that is not understood leaves the others as they are.
Configuration parse(std::string_view text);

}  // namespace weft::sdp
