// weft stat: what the processes of this user that run on weft count.

#include "weft/stat.h"

#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <memory>
#include <thread>

#include "cli/command_line.h"
#include "weft/commands.h"

namespace weft::tools {
namespace {

struct StatOptions {
  std::vector<std::string> wanted;
  bool json = false;
  bool prometheus = false;
  bool markdown = false;
  bool all = false;
  double watch = 0;  // seconds; 0: once
};

// Something was found, or not; also what the shell gets.
constexpr int kFound = 0;
constexpr int kNoneFound = 1;

FoundProcesses look(const StatOptions& options) {
  FoundProcesses found = find_counting(options.wanted);
  for (const std::string& c : found.complaints) fmt::print(stderr, "weft stat: {}\n", c);
  if (found.processes.empty() && options.wanted.empty() && found.complaints.empty()) {
    fmt::print(stderr, "weft stat: no program of this user runs on weft\n");
  }
  return found;
}

void show(const StatOptions& options, const FoundProcesses& found) {
  if (options.json) {
    const int indent = options.watch > 0 ? -1 : 2;  // watched: a document on each line
    // Names of programs need not be UTF-8.
    fmt::print("{}\n", counters_as_json(found.processes, options.all)
                           .dump(indent, ' ', false, nlohmann::json::error_handler_t::replace));
  } else if (options.prometheus) {
    fmt::print("{}", counters_as_prometheus(found.processes, options.all));
  } else {
    fmt::print("{}", counters_as_text(found.processes, options.all));
  }
  std::fflush(stdout);
}

int watch(const StatOptions& options, FoundProcesses before) {
  // A signal is its usual end, and all is written that was seen.
  for (const int number : {SIGINT, SIGTERM}) std::signal(number, [](int) { ::_exit(kFound); });
  const std::chrono::duration<double> pause{options.watch};
  // Until a signal comes, or the last of them is gone.
  for (;;) {
    std::this_thread::sleep_for(pause);
    FoundProcesses now = find_counting(options.wanted);
    if (now.processes.empty()) return kFound;
    if (options.json) {
      show(options, now);
    } else {
      fmt::print("{}", changes_as_text(before.processes, now.processes));
      std::fflush(stdout);
    }
    before = std::move(now);
  }
}

int stat(const StatOptions& options) {
  if (options.markdown) {
    fmt::print("{}", counters_as_markdown());
    return kFound;
  }
  FoundProcesses found = look(options);
  show(options, found);
  if (found.processes.empty()) return kNoneFound;
  return options.watch > 0 ? watch(options, std::move(found)) : kFound;
}

}  // namespace

void add_stat_command(CLI::App& weft, int& status) {
  CLI::App* command =
      weft.add_subcommand("stat", "Print what running programs count: traffic, calls, refusals");
  auto options = std::make_shared<StatOptions>();
  command->add_option("wanted", options->wanted, "Only these processes, by number or name")
      ->type_name("PID|PROGRAM");
  CLI::Option* json = command->add_flag("--json", options->json, "Print JSON");
  CLI::Option* prometheus =
      command->add_flag("--prometheus", options->prometheus, "Print the text format of Prometheus")
          ->excludes(json);
  command->add_flag("--all", options->all, "Also counters that stand at 0");
  command
      ->add_option("--watch", options->watch,
                   "Go on until the last of them is gone: what moved, each so many seconds")
      ->type_name("SECONDS")
      ->check(cli::between(0.01, 86400.0))
      ->excludes(prometheus);
  command
      ->add_flag("--markdown", options->markdown,
                 "Print the table of all counters as docs/counters.md has it")
      ->excludes(json)
      ->excludes(prometheus);
  cli::set_examples(
      *command,
      {{"weft stat", "all programs of this user"},
       {"weft stat --watch 1 ib_write_bw", "what moved, each second"},
       {"weft stat --prometheus", "for a collector"}},
      "Sees processes of the same user, root those of all; docs/counters.md has what each counter "
      "means.\nExit status: 0 when a process was found, also if a signal ended --watch; 1 when "
      "none "
      "was; 2: wrong\noptions.");
  command->callback([options, &status] { status = stat(*options); });
}

}  // namespace weft::tools
