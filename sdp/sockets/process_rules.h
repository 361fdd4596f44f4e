// The rules of this process (sdp/rules), and the log that they name. Any thread; they need no
// adapter.
#pragma once

#include "sdp/rules/load.h"
#include "sdp/rules/log.h"

namespace weft::sdp {

// Read at the first call. What is wrong in them, or in the environment, is said to their log then.
const LoadedRules& process_rules();
// Where their log statement sends what the library says.
const SentenceLog& process_log();

}  // namespace weft::sdp
