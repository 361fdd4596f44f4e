// The files that processes on weft write where WEFT_TRACE has them: which ones are there.
#pragma once

#include <set>
#include <string>

#include "base/result.h"

namespace weft::tools {

// A name for WEFT_TRACE, %p for the number of the process in its last part alone.
class TraceFiles {
 public:
  // Absolute, whatever the program makes of its working directory. A sentence when files of this
  // name cannot be made.
  static Result<TraceFiles, std::string> named(const std::string& name);

  const std::string& pattern() const { return pattern_; }
  // What is there by now: names that a process would give its file for this pattern (port/capture).
  std::set<std::string> present() const;

 private:
  explicit TraceFiles(std::string pattern) : pattern_(std::move(pattern)) {}
  std::string pattern_;
};

// Which protocols there are among the first packets of a capture (a hundred thousand). Nothing of
// what cannot be read.
struct Recorded {
  bool streams = false;    // TCP
  bool datagrams = false;  // UDP
};
Recorded look_into(const std::string& file);

// The Wireshark dissector for WDP as it belongs to a program `weft` at this path, installed or as
// it was built; the name in weft's sources where it is not there.
std::string dissector_of(const std::string& program);

}  // namespace weft::tools
