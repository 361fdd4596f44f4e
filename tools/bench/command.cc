#include "bench/command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <memory>
#include <optional>

#include "bench/cases.h"
#include "bench/compare_command.h"
#include "bench/processes.h"
#include "bench/report.h"
#include "bench/result_lines.h"
#include "bench/side.h"
#include "cli/command_line.h"
#include "cli/stop.h"
#include "kit/failure.h"
#include "kit/json_text.h"
#include "kit/launch.h"
#include "kit/script.h"
#include "measure/energy_option.h"

namespace weft::bench {
namespace {

struct SuiteOptions {
  CaseChoice cases;
  unsigned mtu = 0;
  Offloads offloads = Offloads::unchanged;
  unsigned repetitions = 5;
  double seconds = 0.5;
  bool quick = false;
  bool json = false;
  std::string jsonl;
  bool list = false;
  bool netns = false;
  bool no_pin = false;
  bool one_core = false;
  bool polling = false;
  bool priority = false;
  std::string library;
  std::vector<measure::EnergyChoice> energy;
};

struct SideOptions {
  int control = -1;
  int peer = -1;
};

// How far it is, on one line of a terminal; nothing where a program reads along.
class Progress {
 public:
  Progress(size_t steps, bool wanted)
      : steps_(steps), shown_(wanted && ::isatty(STDERR_FILENO) == 1) {}
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() {
    if (shown_) std::fputs("\r\x1b[K", stderr);
  }
  // One more begins.
  void step(const std::string& name) {
    const size_t full = kWidth * done_ / steps_;
    ++done_;
    if (!shown_) return;
    fmt::print(stderr, "\r\x1b[K[{:<{}}] {} of {}: {}", std::string(full, '#'), kWidth, done_,
               steps_, name);
    std::fflush(stderr);
  }

 private:
  static constexpr size_t kWidth = 20;
  size_t steps_;
  size_t done_ = 0;
  bool shown_;
};

// At rest nothing differs from turn to turn, and the idle case takes longer than the others.
constexpr unsigned kRestRepetitions = 2;
constexpr double kIdleSeconds = 2;

unsigned repetitions_of(const Spec& spec, const SuiteOptions& options) {
  return spec.group == Group::rest ? std::min(options.repetitions, kRestRepetitions)
                                   : options.repetitions;
}

double seconds_of(const Spec& spec, const SuiteOptions& options) {
  if (spec.operation == Operation::idle && !options.quick) {
    return std::max(options.seconds, kIdleSeconds);
  }
  return options.seconds;
}

void measure(Run& run, const SuiteOptions& options, const Setting& setting,
             std::optional<ResultFile>& kept) {
  size_t steps = 0;
  for (const CaseResult& c : run.cases) steps += repetitions_of(c.spec, options);
  Progress progress{steps, !options.json};
  for (unsigned turn = 0; turn < options.repetitions; ++turn) {
    for (CaseResult& c : run.cases) {
      if (turn >= repetitions_of(c.spec, options)) continue;
      if (cli::stop_asked()) return;
      progress.step(c.spec.name);
      const std::string began = utc_time(std::time(nullptr));
      Measurement measured = run_once(c.spec, seconds_of(c.spec, options), setting);
      // The signal may have cut it off.
      if (cli::stop_asked()) return;
      c.repetitions.push_back(std::move(measured));
      run.energy = setting.meter.energy();
      if (kept) kept->append(result_line(run, c.spec, turn, c.repetitions.back(), began));
    }
  }
}

[[noreturn]] void refuse_names(CaseChoice choice) {
  const std::string given = choice.only.empty() ? "" : choice.only.front();
  choice.only.clear();
  std::vector<std::string> names;
  for (const Spec& spec : make_cases(choice)) names.push_back(spec.name);
  cli::wrong_usage(fmt::format("--only: no case is called '{}'{}; 'weft bench {} --list' has them",
                               given, cli::did_you_mean(given, names), name_of(choice.suite)));
}

Network network_of(const SuiteOptions& options) {
  if (options.cases.suite == Suite::loss) return lossy_network(options.mtu);
  if (options.netns && options.cases.same_host) {
    cli::wrong_usage("--same-host: in two network namespaces (--netns) no memory is shared");
  }
  if (options.cases.link) return relayed_network(options.mtu);
  if (options.netns) return veth_network(options.mtu, options.offloads);
  if (options.offloads != Offloads::unchanged) cli::wrong_usage("--offloads is for --netns");
  if (options.mtu != 0) cli::wrong_usage("--mtu is for --netns");
  return loopback_network();
}

Pinning pinning_of(const SuiteOptions& options) {
  if (options.no_pin) return {};
  return options.one_core ? one_cpu() : two_cpus();
}

void expect_to_go_together(const SuiteOptions& options) {
  if (!options.cases.beside.empty() && (!options.cases.link || options.cases.link_mbps == 0)) {
    cli::wrong_usage("--beside: streams share a link that --link and --mbps make");
  }
  if (options.cases.link_mbps != 0 && !options.cases.link) cli::wrong_usage("--mbps is for --link");
  if (options.cases.link && (options.netns || options.offloads != Offloads::unchanged)) {
    cli::wrong_usage("--link makes namespaces of its own; leave out --netns and --offloads");
  }
  if (!options.cases.peers.empty() && (options.cases.link || options.netns)) {
    cli::wrong_usage("--peers: they are addresses of the loopback; leave out --link and --netns");
  }
  if (!options.cases.setup.empty() && (options.cases.link || !options.cases.peers.empty())) {
    cli::wrong_usage("--setup: cases of its own; leave out --link and --peers");
  }
}

int run_suite(SuiteOptions options) {
  if (options.quick) {
    options.repetitions = 2;
    options.seconds = 0.1;
  }
  expect_to_go_together(options);
  if (options.polling) options.cases.bandwidth_wait = Wait::poll;
  options.cases.apart = options.netns;
  const std::vector<Spec> specs = make_cases(options.cases);
  if (options.list) {
    for (const Spec& spec : specs) fmt::print("{}\n", spec.name);
    return 0;
  }
  if (specs.empty()) refuse_names(options.cases);
  if (options.library.empty()) {
    options.library = kit::own_library_folder() + "/" + kit::kLibraries[0];
  }
  if (::access(options.library.c_str(), R_OK) != 0) {
    throw kit::system_failure(options.library +
                              ", the library to measure, cannot be read; build it");
  }
  // The sides inherit it; the memory case opens many connections.
  if (const auto sentence = kit::raise_descriptor_limit()) {
    fmt::print(stderr, "weft bench: note: {}\n", *sentence);
  }
  if (options.priority && ::geteuid() != 0) throw kit::Failure{"--priority has to be run as root"};
  cli::catch_stop_signals();
  const Network network = network_of(options);
  if (options.energy.empty()) options.energy = {measure::EnergyChoice::first_quick};
  PhaseMeter meter{{}, options.energy};
  const Setting setting{.network = network,
                        .pinning = pinning_of(options),
                        .library = options.library,
                        .meter = meter,
                        .first = options.priority};
  Run run{.suite = options.cases.suite,
          .path = network.name,
          .library = options.library,
          .version = WEFT_VERSION,
          .mtu = options.mtu,
          .offloads = options.offloads,
          .repetitions = options.repetitions,
          .seconds = options.seconds,
          .pinned = setting.pinning.initiator.has_value(),
          .one_core = options.one_core && setting.pinning.initiator.has_value(),
          .first = setting.first,
          .machine = this_machine(),
          .cases = {}};
  for (const Spec& spec : specs) run.cases.push_back({.spec = spec, .repetitions = {}});
  std::optional<ResultFile> kept;
  if (!options.jsonl.empty()) kept.emplace(options.jsonl);
  measure(run, options, setting, kept);
  run.ended_early = std::any_of(run.cases.begin(), run.cases.end(), [&](const CaseResult& c) {
    return c.repetitions.size() < repetitions_of(c.spec, options);
  });
  std::erase_if(run.cases, [](const CaseResult& c) { return c.repetitions.empty(); });
  run.machine.load_after = load_average();
  fmt::print("{}", options.json ? kit::text_of(as_json(run), 2) + "\n" : as_text(run));
  const auto failed = failures(run.cases);
  if (options.json) {
    for (const std::string& sentence : failed) fmt::print(stderr, "weft bench: {}\n", sentence);
  }
  if (run.ended_early) return 128 + cli::stop_signal();
  return failed.empty() ? 0 : 1;
}

void add_method_options(CLI::App& command, SuiteOptions& options) {
  command.add_option("--repetitions", options.repetitions, "How often each case runs")
      ->check(cli::between(1U, 1000U))
      ->capture_default_str();
  command.add_option("--seconds", options.seconds, "How long it runs each time")
      ->check(cli::between(0.01, 600.0))
      ->capture_default_str();
  command
      .add_option("--only", options.cases.only,
                  "Only the cases with these names, or patterns such as 'write/*/crc', with commas "
                  "between them")
      ->delimiter(',')
      ->allow_extra_args(false);
  command.add_flag("--list", options.list, "Print the names of the cases, and measure nothing");
  command.add_flag("--quick", options.quick,
                   "2 repetitions of 0.1 s: whether it runs, not how fast");
  command.add_option("--mtu", options.mtu, "MTU between the namespaces, instead of 1500")
      ->check(cli::between(1280U, 65535U));
  command.add_flag("--no-pin", options.no_pin, "Do not pin the sides to CPUs");
  command.add_flag("--priority", options.priority,
                   "Let the sides go before all other processes, on a busy machine (as root)");
  command
      .add_option("--library", options.library, "Measure this libibverbs.so.1 instead of weft's")
      ->type_name("PATH");
  measure::add_energy_option(command, options.energy,
                             "the first of them but ipmi that can be read");
  command.add_flag("--json", options.json, "Print JSON, with each repetition");
  command
      .add_option("--jsonl", options.jsonl,
                  "Also append a line of JSON for each repetition to this file")
      ->type_name("FILE");
  const std::string suite = name_of(options.cases.suite);
  cli::set_examples(
      command,
      {{fmt::format("weft bench {} --quick", suite), "whether it runs"},
       {fmt::format("weft bench {} --list", suite), "the names of its cases"},
       {fmt::format("weft bench {} --jsonl results.jsonl", suite), "kept, for compare and report"}},
      "Exit status: 0 when everything was measured, whether or not the targets are met; 1 when a\n"
      "case failed or its data was damaged; 130 or 143 when SIGINT or SIGTERM ended it early, with "
      "a\n"
      "report of the repetitions until then. docs/performance.md explains the figures.");
}

void add_sizes_option(CLI::App& command, SuiteOptions& options, const char* usual,
                      const char* what = "Message sizes of the bandwidth cases") {
  command
      .add_option("--sizes", options.cases.sizes,
                  fmt::format("{}, bytes or with K or M ({})", what, usual))
      ->delimiter(',')
      ->allow_extra_args(false)
      ->transform(cli::size())
      ->check(cli::between(uint64_t{1}, kLargestMessage));
}

void add_netns_option(CLI::App& command, SuiteOptions& options) {
  command.add_flag("--netns", options.netns,
                   "Between two network namespaces instead of on loopback (as root)");
  command
      .add_option("--offloads", options.offloads,
                  "With --netns: switch checksum, TSO, GSO and GRO of the devices on or off")
      ->transform(cli::one_of(
          std::map<std::string, Offloads>{{"on", Offloads::on}, {"off", Offloads::off}}));
}

void add_polling_option(CLI::App& command, SuiteOptions& options) {
  command.add_flag(
      "--polling", options.polling,
      "Bandwidth: poll the completion queue all the time instead of sleeping on events");
}

void add_losses_option(CLI::App& command, SuiteOptions& options, const char* sentence) {
  command.add_option("--losses", options.cases.losses, sentence)
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(cli::between(0.0, 100.0));
}

constexpr double kLongestDelay = 100;  // ms
constexpr unsigned kMostPeers = 10'000;
constexpr unsigned kMostBeside = 200;  // each takes four processes

void add_loss_options(CLI::App& command, SuiteOptions& options) {
  add_losses_option(command, options, "Packets lost, percent (0,0.1,1,3,10)");
  command
      .add_option("--by", options.cases.loss_by,
                  "Who loses them: fault (WEFT_FAULT in both sides) or nft (the network)")
      ->transform(cli::one_of(
          std::map<std::string, LossBy>{{"fault", LossBy::fault}, {"nft", LossBy::nft}}));
  command.add_option("--gbps", options.cases.gbps, "Offered by UC Writes and Sends, Gb/s")
      ->check(cli::between(0.001, 1000.0))
      ->capture_default_str();
}

void add_chunk_options(CLI::App& command, SuiteOptions& options) {
  command
      .add_option("--write-size", options.cases.piece,
                  "Bytes of each Write, or of each send(2) over TCP (16K)")
      ->transform(cli::size())
      ->check(cli::between(uint64_t{1}, kLargestMessage));
  options.one_core = true;
  command.add_flag("--one-core,!--two-cores", options.one_core,
                   "Both sides on one CPU together (as it is without this), or on one each");
}

void add_sdp_options(CLI::App& command, SuiteOptions& options) {
  command
      .add_option("--connections", options.cases.connections,
                  "Connections at a time, each with a thread on both sides (1,2,4,8)")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(cli::between(1U, 1000U));
}

// The command of a suite.
CLI::App& add_suite(CLI::App& bench, int& status, Suite suite, const char* sentence,
                    const std::shared_ptr<SuiteOptions>& options) {
  options->cases.suite = suite;
  CLI::App* command = bench.add_subcommand(name_of(suite), sentence);
  add_method_options(*command, *options);
  command->callback([options, &status] { status = run_suite(*options); });
  return *command;
}

void add_rc(CLI::App& bench, int& status) {
  const auto options = std::make_shared<SuiteOptions>();
  CLI::App& command =
      add_suite(bench, status, Suite::rc, "Reliable connections against raw TCP", options);
  add_sizes_option(command, *options, "64,512,4K,16K,64K,1M");
  add_netns_option(command, *options);
  add_polling_option(command, *options);
  command.add_flag("--same-host", options->cases.same_host,
                   "Through memory that both sides share (option same_host), beside unix "
                   "sockets and what memory can do at best; without this, over TCP");
}

void add_many(CLI::App& bench, int& status) {
  const auto options = std::make_shared<SuiteOptions>();
  CLI::App& command =
      add_suite(bench, status, Suite::many,
                "Writes over many reliable connections, against as many TCP sockets", options);
  add_sizes_option(command, *options, "64K");
  add_netns_option(command, *options);
  add_polling_option(command, *options);
}

void add_uc(CLI::App& bench, int& status) {
  const auto options = std::make_shared<SuiteOptions>();
  CLI::App& command =
      add_suite(bench, status, Suite::uc, "Unreliable connections against plain UDP", options);
  add_sizes_option(command, *options, "64K,1M");
  command
      .add_option("--udp-sizes", options->cases.udp_sizes,
                  "Datagrams of plain UDP, bytes (8K,65000)")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->transform(cli::size())
      ->check(cli::between(kSmallestDatagram, kLargestDatagram));
  add_netns_option(command, *options);
  add_polling_option(command, *options);
}

void add_ud(CLI::App& bench, int& status) {
  const auto options = std::make_shared<SuiteOptions>();
  CLI::App& command =
      add_suite(bench, status, Suite::ud, "Round trips of UD and UC against plain UDP", options);
  add_netns_option(command, *options);
}

// Of the streams that share a link.
void add_link_options(CLI::App& command, SuiteOptions& options) {
  command.add_flag("--link", options.cases.link,
                   "Bandwidth alone, over a link between two network namespaces that has "
                   "--delays and --losses itself, so that TCP has them, too (as root)");
  command
      .add_option("--mbps", options.cases.link_mbps,
                  "With --link: Mb/s that it carries each way, behind a queue of two round trips, "
                  "20 ms at least (any number)")
      ->check(cli::between(0.1, 100'000.0));
  command
      .add_option(
          "--beside", options.cases.beside,
          "With --link and --mbps: streams of TCP and of RC over UDP that share the link with "
          "as many of plain TCP, each between two processes of its own: 1,10,50. "
          "Only its full queue loses anything")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(cli::between(1U, kMostBeside));
}

// Of cases that take the place of all others.
void add_crowd_options(CLI::App& command, SuiteOptions& options) {
  command
      .add_option(
          "--peers", options.cases.peers,
          "Instead of all that: messages of 64 bytes to so many peers by turns, on loopback, "
          "their rate, and what memory and how many sockets a peer takes: 1,10,100,1000")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(cli::between(1U, kMostPeers));
  command
      .add_option("--setup", options.cases.setup,
                  "Instead of all that: so many RC queue pairs at a time that are made, connected "
                  "by number, used once and destroyed: 1,100,1000")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(cli::between(1U, kMostPeers));
}

void add_rd(CLI::App& bench, int& status) {
  const auto options = std::make_shared<SuiteOptions>();
  CLI::App& command = add_suite(
      bench, status, Suite::rd,
      "RC over UDP and reliable UD, against RC over TCP, UD, UC, and plain sockets", options);
  add_sizes_option(command, *options, "64K,1M", "Message sizes of RC, UC and TCP");
  add_losses_option(command, *options,
                    "Datagrams lost in the lossy cases of RC over UDP and RD, percent, by "
                    "WEFT_FAULT in both sides (1)");
  command
      .add_option("--delays", options->cases.delays,
                  "More such cases, also without losses, on a path that takes so many ms each way: "
                  "0.1,1,10. They need --seconds for many round trips")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(cli::between(0.0, kLongestDelay));
  add_link_options(command, *options);
  add_crowd_options(command, *options);
  add_netns_option(command, *options);
  add_polling_option(command, *options);
}

void add_loss(CLI::App& bench, int& status) {
  const auto options = std::make_shared<SuiteOptions>();
  CLI::App& command =
      add_suite(bench, status, Suite::loss,
                "Goodput of UC, RC and TCP where packets are lost; between two network namespaces "
                "(as root)",
                options);
  add_sizes_option(command, *options, "64K");
  add_loss_options(command, *options);
}

void add_chunk(CLI::App& bench, int& status) {
  const auto options = std::make_shared<SuiteOptions>();
  CLI::App& command =
      add_suite(bench, status, Suite::chunk,
                "Writes into one of two buffers, a Send when it is full, a Send back; against raw "
                "TCP that does the same, on one core",
                options);
  add_sizes_option(command, *options, "64K,128K,256K,512K,1M", "Sizes of the two buffers");
  add_chunk_options(command, *options);
  add_netns_option(command, *options);
}

void add_sdp(CLI::App& bench, int& status) {
  const auto options = std::make_shared<SuiteOptions>();
  CLI::App& command =
      add_suite(bench, status, Suite::sdp,
                "Sockets by SDP (weft run --sdp), against the same over the kernel's TCP", options);
  add_sizes_option(command, *options, "4K,16K,64K,256K,1M");
  add_sdp_options(command, *options);
  add_netns_option(command, *options);
}

void add_suites(CLI::App& bench, int& status) {
  add_rc(bench, status);
  add_many(bench, status);
  add_uc(bench, status);
  add_ud(bench, status);
  add_rd(bench, status);
  add_loss(bench, status);
  add_chunk(bench, status);
  add_sdp(bench, status);
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
  CLI::App* command = weft.add_subcommand("bench", "Measure weft against raw sockets");
  command->require_subcommand(1);
  add_suites(*command, status);
  add_compare_command(*command, status);
  kit::add_script_command(*command, status, "paper",
                          "Measure what the paper's figures need, for 'weft report'", "paper.py",
                          kit::words_of_weft(WEFT_VERSION));
  add_side_command(*command, status);
  cli::set_examples(*command,
                    {{"weft bench rc", "reliable connections against raw TCP"},
                     {"weft bench uc --quick", "whether UC runs, in seconds"},
                     {"weft bench compare before.jsonl after.jsonl", "two kept results"}});
}

}  // namespace weft::bench
