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

}  // namespace weft::tools
