// weft stat: what the processes of this user that run on weft count.

#include "weft/stat.h"

#include <fmt/format.h>
#include <poll.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <utility>

#include "cli/command_line.h"
#include "cli/output.h"
#include "cli/stop.h"
#include "kit/clock.h"
#include "kit/json_text.h"
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
constexpr double kUsualPause = 1;  // seconds, of --watch

FoundProcesses look(const StatOptions& options) {
  FoundProcesses found = find_counting(options.wanted);
  for (const std::string& c : found.complaints) fmt::print(stderr, "weft stat: {}\n", c);
  if (found.empty() && options.wanted.empty() && found.complaints.empty()) {
    fmt::print(stderr, "weft stat: no program of this user runs on weft\n");
  }
  return found;
}

using Clock = std::chrono::steady_clock;

void show(const StatOptions& options, const FoundProcesses& found, const LookBefore& before = {}) {
  if (options.json) {
    const int indent = options.watch > 0 ? -1 : 2;  // watched: a document on each line
    nlohmann::json all = counters_as_json(found.processes, options.all, before);
    all["sockets"] = sdp_as_json(found.sockets);
    cli::write_output(kit::text_of(all, indent) + "\n");
  } else if (options.prometheus) {
    cli::write_output(counters_as_prometheus(found.processes, options.all) +
                      sdp_as_prometheus(found.sockets));
  } else {
    cli::write_output(counters_as_text(found.processes, options.all) + sdp_as_text(found.sockets));
  }
}

// Whether it slept so long; else a signal came.
bool slept(double seconds) {
  const int64_t until = kit::now_ns() + static_cast<int64_t>(seconds * 1e9);
  pollfd p{.fd = cli::stop_descriptor(), .events = POLLIN, .revents = 0};
  while (!cli::stop_asked()) {
    constexpr int64_t kMsNs = 1'000'000;
    const int64_t left = (until - kit::now_ns() + kMsNs - 1) / kMsNs;
    if (left <= 0) return true;
    (void)::poll(&p, 1, static_cast<int>(left));
  }
  return false;
}

int watch(const StatOptions& options, FoundProcesses before) {
  auto looked = Clock::now();
  // Until a signal comes, or the last of them is gone.
  while (slept(options.watch)) {
    FoundProcesses now = find_counting(options.wanted);
    const auto then = std::exchange(looked, Clock::now());
    const LookBefore last{.processes = before.processes,
                          .seconds = std::chrono::duration<double>(looked - then).count()};
    // A look that a signal interrupts may lack something.
    if (now.empty() || cli::stop_asked()) break;
    if (options.json) {
      show(options, now, last);
    } else {
      cli::write_output(changes_as_text(last, now.processes));
    }
    before = std::move(now);
  }
  return kFound;
}

int stat(const StatOptions& options) {
  if (options.markdown) {
    fmt::print("{}", counters_as_markdown());
    return kFound;
  }
  // The usual end of a watch, and all is written that was seen.
  if (options.watch > 0) cli::catch_stop_signals();
  FoundProcesses found = look(options);
  show(options, found);
  if (found.empty()) return kNoneFound;
  return options.watch > 0 ? watch(options, std::move(found)) : kFound;
}

// What stands behind --watch: seconds, or a process, or nothing ("true" for CLI11).
void take_pause(StatOptions& options, std::string given) {
  options.watch = kUsualPause;
  if (given.empty() || given == "true") return;
  double seconds = 0;
  if (!CLI::detail::lexical_cast(given, seconds)) {
    options.wanted.insert(options.wanted.begin(), given);
    return;
  }
  const auto pauses = cli::between(0.01, 86400.0);
  if (const std::string wrong = pauses(given); !wrong.empty()) {
    throw CLI::ValidationError("--watch", wrong);
  }
  options.watch = seconds;
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
  auto given = std::make_shared<std::string>();
  CLI::Option* watch =
      command
          ->add_option("--watch", *given,
                       "Go on until the last of them is gone: what moved, and how much that is a "
                       "second; each so many seconds, or each second")
          ->type_name("[SECONDS]")
          ->expected(0, 1)
          ->excludes(prometheus);
  command
      ->add_flag("--markdown", options->markdown,
                 "Print the table of all counters as docs/counters.md has it")
      ->excludes(json)
      ->excludes(prometheus);
  cli::set_examples(
      *command,
      {{"weft stat", "all programs of this user"},
       {"weft stat --watch", "what moved, each second"},
       {"weft stat --watch 10 ib_write_bw", "of one program, each 10 seconds"},
       {"weft stat --prometheus", "for a collector"}},
      "Sees processes of the same user, root those of all; docs/counters.md has what each counter "
      "means.\nExit status: 0 when a process was found, also if a signal ended --watch; 1 when "
      "none "
      "was; 2: wrong\noptions.");
  command->callback([options, given, watch, &status] {
    if (watch->count() > 0) take_pause(*options, *given);
    status = stat(*options);
  });
}

}  // namespace weft::tools
