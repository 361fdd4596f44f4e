// weft run: starts a program with weft's libraries in the place of the system's.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string_view>

#include "cli/command_line.h"
#include "kit/start.h"
#include "weft/commands.h"

namespace weft::tools {
namespace {

constexpr std::array<std::string_view, 3> kTakingProgram = {"run", "trace", "measure"};

struct RunOptions {
  kit::LaunchRequest request;
  bool show_only = false;
};

int run(const RunOptions& options) {
  constexpr const char* kWho = "weft run";
  const auto plan = kit::plan_and_tell(kWho, options.request);
  if (!plan) return plan.error();
  if (options.show_only) {
    for (const auto& [name, value] : plan->environment) fmt::print("{}={}\n", name, value);
    fmt::print("{}\n", plan->path);
    return 0;
  }
  return kit::execute(kWho, *plan, options.request);
}

// Whether `word` is an option whose value is the next word.
bool takes_next(const CLI::App& command, const std::string& word) {
  const auto options = command.get_options();
  return std::any_of(options.begin(), options.end(), [&word](const CLI::Option* option) {
    return option->check_name(word) && option->get_items_expected_max() > 0;
  });
}

}  // namespace

std::vector<std::string> take_program(const CLI::App& weft, std::vector<std::string>& arguments) {
  if (arguments.empty() ||
      std::ranges::find(kTakingProgram, arguments.front()) == kTakingProgram.end()) {
    return {};
  }
  const CLI::App& command = *weft.get_subcommand(arguments.front());
  for (auto word = arguments.begin() + 1; word != arguments.end(); ++word) {
    const bool separator = *word == "--";
    if (word->starts_with('-') && !separator) {
      if (takes_next(command, *word) && word + 1 != arguments.end()) ++word;
      continue;
    }
    std::vector<std::string> program(separator ? word + 1 : word, arguments.end());
    arguments.erase(word, arguments.end());
    return program;
  }
  return {};
}

void add_run_command(CLI::App& weft, const std::vector<std::string>& program, int& status) {
  CLI::App* command = weft.add_subcommand("run", "Start a program on weft's libraries");
  cli::set_usage(*command, "-- PROGRAM [ARGUMENT]...");
  auto options = std::make_shared<RunOptions>();
  command
      ->add_option("--env", options->request.environment,
                   "Set an environment variable for the program; may be repeated")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  command->add_flag("--sdp", options->request.sdp,
                    "Take the program's TCP connections by SDP, where the other side does, too");
  command->add_flag("--show", options->show_only,
                    "Print the variables and the path that would be used, and start nothing");
  cli::set_examples(
      *command,
      {{"weft run -- ib_write_bw 192.0.2.7", "a client of the server there"},
       {"weft run --env WEFT_CRC=off -- rping -s", "with an option of weft"},
       {"weft run --sdp -- iperf3 -c 192.0.2.7", "sockets by SDP, to a server that has it, too"},
       {"weft run --env WEFT_FAULT=loss:0.01 -- ib_write_bw -c UC", "with faults on purpose"}},
      "Options of weft are environment variables; 'weft info --options' lists them.\n"
      "The exit status is the program's. 127: the program was not found. 126: it cannot be\n"
      "executed. 125: weft's libraries are missing, --env cannot be read, or a WEFT_ variable is\n"
      "not an option or has a value that is not accepted. 2: wrong words.");
  command->callback([options, &program, &status] {
    options->request.command = program;
    if (options->request.command.empty()) throw CLI::RequiredError("PROGRAM");
    status = run(*options);
  });
}

}  // namespace weft::tools
