// Becoming the program: the end of `weft run` and of `weft trace`.
#pragma once

#include <string>

#include "kit/launch.h"

namespace weft::kit {

// Plans the launch of `request` and prints what the user should know, each sentence with `who`, the
// command, in front. A status when it cannot be done.
Result<LaunchPlan, int> plan_and_tell(const char* who, const LaunchRequest& request);

// Executes the program in this process. Returns, with a status, only when that failed.
int execute(const char* who, const LaunchPlan& plan, const LaunchRequest& request);

// Says why execve(2) of `path` failed with `error`. The status to end with.
int say_exec_error(const char* who, const std::string& path, int error);

void say(const char* who, const std::string& sentence);

}  // namespace weft::kit
