#include "measure/command.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "cli/command_line.h"
#include "cli/output.h"
#include "kit/held_signals.h"
#include "kit/json_text.h"
#include "kit/launch.h"
#include "kit/program.h"
#include "kit/start.h"
#include "measure/energy_option.h"
#include "measure/meter.h"
#include "port/fd.h"

namespace weft::measure {
namespace {

using kit::kStatusOwnFailure;
using kit::say;

constexpr const char* kWho = "weft measure";
constexpr uint64_t kMostBytes = uint64_t{1} << 60;

struct MeasureOptions {
  std::vector<std::string> command;
  bool json = false;
  std::string output;
  std::string samples;
  unsigned interval_ms = 100;
  std::optional<uint64_t> bytes;
  std::string network;
  std::vector<EnergyChoice> energy;
  std::string sysfs = "/sys";
};

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

// Nothing for no name. The command does not inherit it.
Result<File, std::string> open_to_write(const std::string& name) {
  if (name.empty()) return File{};
  File file{std::fopen(name.c_str(), "we")};
  if (!file) return fail(fmt::format("{}: {}", name, std::strerror(errno)));
  return file;
}

// Executes the command in this process, which has been forked for it. Tells `meter` what memory it
// had until then, and with a further byte when it could not be done.
[[noreturn]] void become(const std::string& path, const std::vector<std::string>& command,
                         const port::Fd& meter) {
  std::vector<char*> words;
  words.reserve(command.size() + 1);
  for (const std::string& word : command) {
    words.push_back(const_cast<char*>(word.c_str()));  // execvp(3) does not write to them
  }
  words.push_back(nullptr);
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const uint64_t had = static_cast<uint64_t>(usage.ru_maxrss) * 1024;
  (void)!::write(meter.get(), &had, sizeof had);
  ::execvp(path.c_str(), words.data());
  const int status = kit::say_exec_error(kWho, path, errno);
  (void)!::write(meter.get(), "", 1);
  ::_exit(status);
}

struct Child {
  pid_t pid = -1;
  bool executed = false;
  uint64_t had_bytes = 0;  // of memory, before it became the command
};

// Nothing but pid -1 when there can be no further process.
Child start(const std::string& path, const std::vector<std::string>& command,
            const kit::HeldSignals& signals) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return {};
  const port::Fd from{ends[0]};
  port::Fd to{ends[1]};
  Child child{.pid = ::fork()};
  if (child.pid == 0) {
    signals.restore();
    cli::restore_sigpipe();
    become(path, command, to);
  }
  to.reset();
  std::array<char, sizeof child.had_bytes + 1> told{};
  size_t length = 0;
  for (;;) {
    const ssize_t got = ::read(from.get(), told.data() + length, told.size() - length);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    length += static_cast<size_t>(got);
  }
  child.executed = length == sizeof child.had_bytes;
  if (child.executed) std::memcpy(&child.had_bytes, told.data(), length);
  return child;
}

// Whether that was possible. Throws nothing when it was not, as fmt::print would.
bool print(const Report& report, bool json, std::FILE* to) {
  const std::string text = json ? kit::text_of(as_json(report), 2) + "\n" : as_text(report);
  return std::fwrite(text.data(), 1, text.size(), to) == text.size() && std::fflush(to) == 0;
}

int own_failure(const std::string& sentence) {
  say(kWho, sentence);
  return kStatusOwnFailure;
}

int measure(const MeasureOptions& options) {
  MeterSetting setting{.interval = std::chrono::milliseconds{options.interval_ms},
                       .energy = options.energy,
                       .roots = {.sysfs = options.sysfs},
                       .bytes = options.bytes};
  if (setting.energy.empty()) setting.energy = {EnergyChoice::first};
  if (!options.network.empty()) {
    setting.interface = parse_interface(options.network);
    if (!setting.interface) {
      return own_failure(
          fmt::format("--network {}: write it as IFACE, IFACE:rx or IFACE:tx", options.network));
    }
    const auto counted = interface_bytes(setting.roots.proc, *setting.interface);
    if (!counted) {
      return own_failure(fmt::format("--network {}: {}; {}", options.network,
                                     counted.error().reason, counted.error().remedy));
    }
  }
  const auto samples = open_to_write(options.samples);
  if (!samples) return own_failure(samples.error());
  const auto output = open_to_write(options.output);
  if (!output) return own_failure(output.error());
  setting.samples = samples->get();
  const char* search_path = std::getenv("PATH");
  const auto path = kit::find_program(options.command.front(),
                                      search_path != nullptr ? search_path : "/bin:/usr/bin");
  if (!path) {
    say(kWho, path.error().sentence);
    return path.error().status;
  }

  Meter meter{setting};
  const kit::HeldSignals signals;
  meter.begin();
  const Child child = start(*path, options.command, signals);
  if (child.pid < 0) return own_failure(fmt::format("fork: {}", std::strerror(errno)));
  if (!child.executed) {
    int status = 0;
    while (::waitpid(child.pid, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : kStatusOwnFailure;
  }
  // A report or samples that nobody takes, or a limit of their size, are no reason to end before
  // the command does: write(2) tells of them, too.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  meter.watch(child.pid, child.had_bytes);
  const int asked = signals.wait_for(child.pid);
  if (asked != 0) {
    say(kWho, fmt::format("{} (process {}) has not ended by signal {}, and goes on; the report is "
                          "of the time until now",
                          options.command.front(), child.pid, asked));
  }
  Report report = meter.end();
  report.command = options.command;
  if (!print(report, options.json, *output ? output->get() : stderr)) {
    const int error = errno;
    // The command has run: its status stands, even where this cannot be said, either.
    std::fputs(fmt::format("{}: the report, {}: {}\n", kWho,
                           *output ? options.output : "standard error", std::strerror(error))
                   .c_str(),
               stderr);
  }
  return asked != 0 ? 128 + asked : report.exit_status;
}

}  // namespace

void add_measure_command(CLI::App& weft, const std::vector<std::string>& program, int& status) {
  CLI::App* command =
      weft.add_subcommand("measure", "Run a command, and say what CPU, memory and energy it took");
  cli::set_usage(*command, "-- COMMAND [ARGUMENT]...");
  auto options = std::make_shared<MeasureOptions>();
  command->add_flag("--json", options->json, "Report as JSON");
  command
      ->add_option("-o,--output", options->output,
                   "Report into this file instead of to standard error")
      ->type_name("FILE");
  command
      ->add_option("--samples", options->samples,
                   "Also write a line of JSON for each interval: time, CPU, W, Gb/s")
      ->type_name("FILE");
  command
      ->add_option("--interval", options->interval_ms,
                   "Look at processes and meters so often, in milliseconds")
      ->type_name("MS")
      ->check(cli::between(10U, 10'000U))
      ->capture_default_str();
  CLI::Option* bytes =
      command
          ->add_option("--bytes", options->bytes,
                       "What the command moves, bytes or with K, M, G (powers of 1024): for Gb/s, "
                       "Gb/s per W and CPU s/GB")
          ->type_name("N")
          ->transform(cli::size())
          ->check(cli::between(uint64_t{0}, kMostBytes));
  command
      ->add_option("--network", options->network,
                   "Count what this interface receives (or sends, with :tx) instead")
      ->type_name("IFACE[:rx|:tx]")
      ->excludes(bytes);
  add_energy_option(*command, options->energy, "the first of them that can be read");
  command->add_option("--sysfs", options->sysfs, "Where sysfs is mounted")
      ->type_name("DIR")
      ->check([](const std::string& folder) -> std::string {
        if (::access(folder.c_str(), X_OK) == 0) return {};
        return fmt::format("{}: {}", folder, std::strerror(errno));
      })
      ->capture_default_str();
  cli::set_examples(
      *command,
      {{"weft measure -- make -j4", "CPU, memory and energy of a command and its children"},
       {"weft measure --bytes 40G -- PROGRAM", "and what a gigabyte of these cost"},
       {"weft measure --json -o use.json -- PROGRAM", "for programs"}},
      "The command runs as it would without: its standard streams are its own, and signals sent "
      "to\n"
      "'weft measure' reach it. If it has not ended a second after SIGINT or SIGTERM, it goes on\n"
      "alone: the report is of the time until then, and the status 130 or 143. Else the exit "
      "status is the command's, 128 and the signal's number "
      "where\n"
      "one ended it; 127: not found, 126: found, but it cannot be executed, 125: 'weft measure'\n"
      "itself could not do its part. docs/measuring.md explains the figures.");
  command->callback([options, &program, &status] {
    options->command = program;
    if (options->command.empty()) throw CLI::RequiredError("COMMAND");
    status = measure(*options);
  });
}

}  // namespace weft::measure
