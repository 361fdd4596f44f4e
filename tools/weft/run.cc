// weft run: starts a program with weft's libraries in the place of the system's.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string_view>

#include "weft/commands.h"
#include "weft/start.h"

namespace weft::tools {
namespace {

// Options of the commands that take a program whose value is the next word.
constexpr std::array<std::string_view, 11> kWithValue = {
    "--env",      "-o",      "--output",  "--snap",   "--size", "--samples",
    "--interval", "--bytes", "--network", "--energy", "--sysfs"};
constexpr std::array<std::string_view, 3> kTakingProgram = {"run", "trace", "measure"};

struct RunOptions {
  LaunchRequest request;
  bool show_only = false;
};

int run(const RunOptions& options) {
  constexpr const char* kWho = "weft run";
  const auto plan = plan_and_tell(kWho, options.request);
  if (!plan) return plan.error();
  if (options.show_only) {
    for (const auto& [name, value] : plan->environment) fmt::print("{}={}\n", name, value);
    fmt::print("{}\n", plan->path);
    return 0;
  }
  return execute(kWho, *plan, options.request);
}

}  // namespace

std::vector<std::string> take_program(std::vector<std::string>& arguments) {
  if (arguments.empty() ||
      std::ranges::find(kTakingProgram, arguments.front()) == kTakingProgram.end()) {
    return {};
  }
  for (auto word = arguments.begin() + 1; word != arguments.end(); ++word) {
    const bool separator = *word == "--";
    if (word->starts_with('-') && !separator) {
      const bool with_value = std::ranges::find(kWithValue, *word) != kWithValue.end();
      if (with_value && word + 1 != arguments.end()) ++word;
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
      "be executed, 125: weft's libraries are missing, or WEFT_FAULT or --env cannot be read, 2:\n"
      "wrong options. Options of weft itself are environment variables, as in\n"
      "  weft run --env WEFT_FAULT=loss:0.01 -- ib_write_bw -c UC -D 5 192.0.2.7\n"
      "'weft info --options' lists them.");
  command->callback([options, &status] {
    if (options->request.command.empty()) throw CLI::RequiredError("PROGRAM");
    status = run(*options);
  });
}

}  // namespace weft::tools
