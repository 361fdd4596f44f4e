// weft run: starts a program with weft's libraries in the place of the system's.

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "weft/commands.h"
#include "weft/launch.h"

namespace weft::tools {
namespace {

struct RunOptions {
  LaunchRequest request;
  bool show_only = false;
};

std::optional<std::string> inherited_variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value != nullptr ? std::optional<std::string>(value) : std::nullopt;
}

void say(const std::string& sentence) {
  fmt::print(stderr, "weft run: {}\n", sentence);
}

int say_exec_error(const std::string& path, int error) {
  switch (error) {
    case ENOENT:
      say(fmt::format(
          "{}: the interpreter that its first line or its ELF header names does not exist; "
          "install that",
          path));
      return kStatusNotFound;
    case E2BIG:
      say(fmt::format("{}: arguments and environment are too large together; give fewer", path));
      return kStatusNotExecutable;
    default:
      say(fmt::format("{}: {}", path, std::strerror(error)));
      return kStatusNotExecutable;
  }
}

// Returns only when the program could not be started.
int execute(const LaunchPlan& plan, const std::vector<std::string>& command) {
  for (const auto& [name, value] : plan.environment) setenv(name.c_str(), value.c_str(), 1);
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (const std::string& argument : command) {
    arguments.push_back(const_cast<char*>(argument.c_str()));  // execvp(3) does not write to them
  }
  arguments.push_back(nullptr);
  execvp(plan.path.c_str(), arguments.data());
  return say_exec_error(plan.path, errno);
}

int run(const RunOptions& options) {
  const auto plan = plan_launch(options.request, own_library_folder(), inherited_variable);
  if (!plan) {
    say(plan.error().sentence);
    return plan.error().status;
  }
  for (const std::string& warning : plan->warnings) say("note: " + warning);
  if (options.show_only) {
    for (const auto& [name, value] : plan->environment) fmt::print("{}={}\n", name, value);
    fmt::print("{}\n", plan->path);
    return 0;
  }
  if (const auto sentence = raise_descriptor_limit()) say("note: " + *sentence);
  return execute(*plan, options.request.command);
}

}  // namespace

std::vector<std::string> take_program(std::vector<std::string>& arguments) {
  if (arguments.empty() || arguments.front() != "run") return {};
  for (auto word = arguments.begin() + 1; word != arguments.end(); ++word) {
    const bool separator = *word == "--";
    if (word->starts_with('-') && !separator) {
      if (*word == "--env" && word + 1 != arguments.end()) ++word;
      continue;
    }
    std::vector<std::string> program(separator ? word + 1 : word, arguments.end());
    arguments.erase(word, arguments.end());
    return program;
  }
  return {};
}

void add_run_command(CLI::App& weft, const std::vector<std::string>& program, int& status) {
  CLI::App* command = weft.add_subcommand(
      "run", "Start a program on weft's libraries: weft run [OPTIONS] -- PROGRAM [ARGUMENT]...");
  auto options = std::make_shared<RunOptions>();
  options->request.command = program;
  command
      ->add_option("--env", options->request.environment,
                   "Set an environment variable for the program; may be repeated")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  command->add_flag("--show", options->show_only,
                    "Print the variables and the path that would be used, and start nothing");
  command->footer(
      "The program's exit status is the program's own. 127: not found, 126: found, but it cannot\n"
      "be executed, 125: weft's libraries are missing. Options of weft itself are environment\n"
      "variables; 'weft info --options' lists them.");
  command->callback([options, &status] {
    if (options->request.command.empty()) throw CLI::RequiredError("PROGRAM");
    status = run(*options);
  });
}

}  // namespace weft::tools
