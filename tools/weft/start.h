// Becoming the program: the end of `weft run` and of `weft trace`.
#pragma once

#include <string>

#include "weft/launch.h"

namespace weft::tools {

// Plans the launch of `request` and prints what the user should know, each sentence with `who`, the
// command, in front. A status when it cannot be done.
Result<LaunchPlan, int> plan_and_tell(const char* who, const LaunchRequest& request);

// Executes the program in this process. Returns, with a status, only when that failed.
int execute(const char* who, const LaunchPlan& plan, const LaunchRequest& request);

void say(const char* who, const std::string& sentence);

}  // namespace weft::tools
