// Whether RC between two processes of this host can pass through memory here (docs/spec/same-host).
#pragma once

#include <string>

#include "config/options.h"

namespace weft::tools {

// What two processes of this user would come to, and why, in one sentence. Tries it out with a
// child process.
std::string same_host_here(const config::Options& options);

}  // namespace weft::tools
