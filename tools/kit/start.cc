#include "kit/start.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "cli/output.h"

namespace weft::kit {
namespace {

Environment inherited_environment() {
  Environment all;
  for (const char* const* variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    const size_t equals = text.find('=');
    if (equals == std::string_view::npos) continue;
    all.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return all;
}

}  // namespace

int say_exec_error(const char* who, const std::string& path, int error) {
  switch (error) {
    case ENOENT:
      say(who,
          fmt::format(
              "{}: the interpreter that its first line or its ELF header names does not exist; "
              "install that",
              path));
      return kStatusNotFound;
    case E2BIG:
      say(who,
          fmt::format("{}: arguments and environment are too large together; give fewer", path));
      return kStatusNotExecutable;
    default:
      say(who, fmt::format("{}: {}", path, std::strerror(error)));
      return kStatusNotExecutable;
  }
}

void say(const char* who, const std::string& sentence) {
  fmt::print(stderr, "{}: {}\n", who, sentence);
}

Result<LaunchPlan, int> plan_and_tell(const char* who, const LaunchRequest& request) {
  auto plan = plan_launch(request, own_library_folder(), inherited_environment());
  if (!plan) {
    say(who, plan.error().sentence);
    return fail(plan.error().status);
  }
  for (const std::string& warning : plan->warnings) say(who, "note: " + warning);
  return std::move(*plan);
}

int execute(const char* who, const LaunchPlan& plan, const LaunchRequest& request) {
  if (const auto sentence = raise_descriptor_limit()) say(who, "note: " + *sentence);
  for (const auto& [name, value] : plan.environment) setenv(name.c_str(), value.c_str(), 1);
  std::vector<char*> arguments;
  arguments.reserve(request.command.size() + 1);
  for (const std::string& argument : request.command) {
    arguments.push_back(const_cast<char*>(argument.c_str()));  // execvp(3) does not write to them
  }
  arguments.push_back(nullptr);
  cli::restore_sigpipe();
  execvp(plan.path.c_str(), arguments.data());
  return say_exec_error(who, plan.path, errno);
}

}  // namespace weft::kit
