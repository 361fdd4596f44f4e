#include "bench/command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>

#include "bench/cases.h"
#include "bench/failure.h"
#include "bench/processes.h"
#include "bench/report.h"
#include "bench/side.h"
#include "weft/launch.h"

namespace weft::bench {
namespace {

struct RcOptions {
  CaseChoice cases;
  unsigned repetitions = 5;
  double seconds = 0.5;
  bool quick = false;
  bool json = false;
  bool list = false;
  bool netns = false;
  bool no_pin = false;
  bool polling = false;
  bool priority = false;
  std::string library;
};

struct SideOptions {
  int control = -1;
  int peer = -1;
};

// How far it is, on one line of a terminal.
class Progress {
 public:
  explicit Progress(size_t steps) : steps_(steps), shown_(::isatty(STDERR_FILENO) == 1) {}
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() {
    if (shown_) std::fputs("\r\x1b[K", stderr);
  }
  void step(const std::string& name) {
    ++done_;
    if (!shown_) return;
    fmt::print(stderr, "\r\x1b[K[{}/{}] {}", done_, steps_, name);
    std::fflush(stderr);
  }

 private:
  size_t steps_;
  size_t done_ = 0;
  bool shown_;
};

// At rest nothing differs from turn to turn, and the idle case takes longer than the others.
constexpr unsigned kRestRepetitions = 2;
constexpr double kIdleSeconds = 2;

unsigned repetitions_of(const Spec& spec, const RcOptions& options) {
  return spec.group == Group::rest ? std::min(options.repetitions, kRestRepetitions)
                                   : options.repetitions;
}

double seconds_of(const Spec& spec, const RcOptions& options) {
  if (spec.operation == Operation::idle && !options.quick) {
    return std::max(options.seconds, kIdleSeconds);
  }
  return options.seconds;
}

void measure(Run& run, const RcOptions& options, const Setting& setting) {
  size_t steps = 0;
  for (const CaseResult& c : run.cases) steps += repetitions_of(c.spec, options);
  Progress progress{steps};
  for (unsigned turn = 0; turn < options.repetitions; ++turn) {
    for (CaseResult& c : run.cases) {
      if (turn >= repetitions_of(c.spec, options)) continue;
      progress.step(c.spec.name);
      c.repetitions.push_back(run_once(c.spec, seconds_of(c.spec, options), setting));
    }
  }
}

int rc(RcOptions options) {
  if (options.quick) {
    options.repetitions = 2;
    options.seconds = 0.1;
  }
  if (options.polling) options.cases.bandwidth_wait = Wait::poll;
  const std::vector<Spec> specs = make_cases(options.cases);
  if (options.list) {
    for (const Spec& spec : specs) fmt::print("{}\n", spec.name);
    return 0;
  }
  if (specs.empty()) throw Failure{"no case is named so; see 'weft bench rc --list'"};
  if (options.library.empty()) {
    options.library = tools::own_library_folder() + "/" + tools::kLibraries[0];
  }
  if (::access(options.library.c_str(), R_OK) != 0) {
    throw system_failure(options.library + ", the library to measure, cannot be read; build it");
  }
  // The sides inherit it; the memory case opens many connections.
  if (const auto sentence = tools::raise_descriptor_limit()) {
    fmt::print(stderr, "weft bench: note: {}\n", *sentence);
  }
  if (options.priority && ::geteuid() != 0) throw Failure{"--priority has to be run as root"};
  const Network network = options.netns ? veth_network() : loopback_network();
  const Setting setting{.network = network,
                        .pinning = options.no_pin ? Pinning{} : two_cpus(),
                        .library = options.library,
                        .first = options.priority};
  Run run{.path = network.name,
          .library = options.library,
          .repetitions = options.repetitions,
          .seconds = options.seconds,
          .pinned = setting.pinning.initiator.has_value(),
          .first = setting.first,
          .machine = this_machine(),
          .cases = {}};
  for (const Spec& spec : specs) run.cases.push_back({.spec = spec, .repetitions = {}});
  measure(run, options, setting);
  run.machine.load_after = load_average();
  fmt::print("{}", options.json ? as_json(run).dump(2) + "\n" : as_text(run));
  const auto failed = failures(run.cases);
  if (options.json) {
    for (const std::string& sentence : failed) fmt::print(stderr, "weft bench: {}\n", sentence);
  }
  return failed.empty() ? 0 : 1;
}

void add_rc_command(CLI::App& bench, int& status) {
  CLI::App* command = bench.add_subcommand("rc", "Reliable connections against raw TCP");
  auto options = std::make_shared<RcOptions>();
  command->add_option("--repetitions", options->repetitions, "How often each case runs")
      ->check(CLI::Range(1U, 1000U))
      ->capture_default_str();
  command->add_option("--seconds", options->seconds, "How long it runs each time")
      ->check(CLI::Range(0.01, 600.0))
      ->capture_default_str();
  command
      ->add_option("--sizes", options->cases.sizes,
                   "Message sizes of the bandwidth cases, bytes or with K or M (64,4K,64K,1M)")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::Range(uint64_t{1}, kLargestMessage));
  command
      ->add_option("--only", options->cases.only,
                   "Only the cases with these names, or patterns such as 'write/*/crc'")
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_flag("--list", options->list, "Print the names of the cases, and measure nothing");
  command->add_flag("--quick", options->quick,
                    "2 repetitions of 0.1 s: whether it runs, not how fast");
  command->add_flag("--netns", options->netns,
                    "Between two network namespaces instead of on loopback (as root)");
  command->add_flag("--no-pin", options->no_pin, "Do not pin the sides to a CPU each");
  command->add_flag("--priority", options->priority,
                    "Let the sides go before all other processes, on a busy machine (as root)");
  command->add_flag(
      "--polling", options->polling,
      "Bandwidth: poll the completion queue all the time instead of sleeping on events");
  command
      ->add_option("--library", options->library, "Measure this libibverbs.so.1 instead of weft's")
      ->type_name("PATH");
  command->add_flag("--json", options->json, "Print JSON, with each repetition");
  command->footer(
      "Exit status: 0 when everything was measured, whether or not the targets are met; 1 when a\n"
      "case failed or its data was damaged. docs/performance.md explains the figures.");
  command->callback([options, &status] { status = rc(*options); });
}

// Not for people: how a benchmark starts its sides.
void add_side_command(CLI::App& bench, int& status) {
  CLI::App* command = bench.add_subcommand("side", "")->group("");
  auto options = std::make_shared<SideOptions>();
  command->add_option("--control", options->control)->required();
  command->add_option("--peer", options->peer)->required();
  command->callback([options, &status] {
    status = run_side(Channel{port::Fd{options->control}}, Channel{port::Fd{options->peer}});
  });
}

}  // namespace

void add_bench_command(CLI::App& weft, int& status) {
  CLI::App* command = weft.add_subcommand("bench", "Measure weft against raw TCP");
  command->require_subcommand(1);
  add_rc_command(*command, status);
  add_side_command(*command, status);
}

}  // namespace weft::bench
