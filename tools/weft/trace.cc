// weft trace: `weft run` with a capture file for each process, and a word at the end about where
// they are.

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <memory>

#include "cli/command_line.h"
#include "kit/held_signals.h"
#include "kit/start.h"
#include "weft/commands.h"
#include "weft/trace_files.h"

namespace weft::tools {
namespace {

constexpr const char* kWho = "weft trace";

struct TraceOptions {
  kit::LaunchRequest request;
  std::string file = "weft-%p.pcapng";
  uint32_t snap = 0;
  uint32_t size = 1024;
};

// Starts the program and waits for its end. Its status, as a shell has it.
int run_to_end(const kit::LaunchPlan& plan, const kit::LaunchRequest& request) {
  const kit::HeldSignals signals;
  const pid_t self = getpid();
  const pid_t child = fork();
  if (child < 0) {
    kit::say(kWho, fmt::format("fork: {}", std::strerror(errno)));
    return kit::kStatusOwnFailure;
  }
  if (child == 0) {
    signals.restore();
    // Whoever kills this command means the program.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != self) _exit(kit::kStatusOwnFailure);
    _exit(kit::execute(kWho, plan, request));
  }
  if (const int asked = signals.wait_for(child); asked != 0) {
    kit::say(kWho, fmt::format("{} has not ended by signal {}, and is killed",
                               request.command.front(), asked));
    kill(child, SIGKILL);
    // Its file is complete when it is gone.
    (void)waitpid(child, nullptr, 0);
    return 128 + asked;
  }
  int status = 0;
  if (waitpid(child, &status, 0) < 0) return kit::kStatusOwnFailure;
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

std::string size_of(const std::string& file) {
  std::error_code error;
  const auto bytes = std::filesystem::file_size(file, error);
  if (error) return error.message();
  if (bytes < 10'000) return fmt::format("{} bytes", bytes);
  return bytes < 10'000'000 ? fmt::format("{} kB", bytes / 1000)
                            : fmt::format("{} MB", bytes / 1'000'000);
}

void report(const std::set<std::string>& before, const std::set<std::string>& after) {
  std::vector<std::string> files;
  std::ranges::set_difference(after, before, std::back_inserter(files));
  if (files.empty()) {
    kit::say(kWho, "no file: no process has moved a byte over a connection of weft's");
    return;
  }
  Recorded all;
  for (const std::string& file : files) {
    kit::say(kWho, fmt::format("{} ({})", file, size_of(file)));
    const Recorded one = look_into(file);
    all = {.streams = all.streams || one.streams, .datagrams = all.datagrams || one.datagrams};
  }
  if (all.streams || !all.datagrams) {
    kit::say(kWho, "open with Wireshark, or: tshark -Y iwarp_mpa -r FILE");
  }
  if (all.datagrams) {
    std::error_code error;
    const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
    kit::say(
        kWho,
        fmt::format("the datagrams (WDP) need weft's dissector, as option of wireshark or tshark: "
                    "-X lua_script:{}; then: -Y wdp -r FILE",
                    dissector_of(self.string())));
  }
}

int trace(TraceOptions& options) {
  const auto files = TraceFiles::named(options.file);
  if (!files) {
    kit::say(kWho, files.error());
    return kit::kStatusOwnFailure;
  }
  auto& environment = options.request.environment;
  environment.push_back("WEFT_TRACE=" + files->pattern());
  environment.push_back(fmt::format("WEFT_TRACE_SNAP={}", options.snap));
  environment.push_back(fmt::format("WEFT_TRACE_SIZE={}", options.size));
  const auto plan = kit::plan_and_tell(kWho, options.request);
  if (!plan) return plan.error();
  const std::set<std::string> before = files->present();
  const int status = run_to_end(*plan, options.request);
  report(before, files->present());
  return status;
}

}  // namespace

void add_trace_command(CLI::App& weft, const std::vector<std::string>& program, int& status) {
  CLI::App* command =
      weft.add_subcommand("trace", "Run a program and record what it sends and receives");
  cli::set_usage(*command, "-- PROGRAM [ARGUMENT]...");
  auto options = std::make_shared<TraceOptions>();
  command
      ->add_option("-o,--output", options->file,
                   "The capture file; %p stands for the number of the process")
      ->type_name("FILE")
      ->capture_default_str();
  command
      ->add_option(
          "--snap", options->snap,
          "Keep at most N bytes of each frame (MPA start-up frame, FPDU or datagram); 0 keeps "
          "all")
      ->type_name("N")
      ->check(cli::between(0, 65535))
      ->capture_default_str();
  command->add_option("--size", options->size, "End a file at so many MiB")
      ->type_name("MIB")
      ->check(cli::between(1, 1'048'576))
      ->capture_default_str();
  command
      ->add_option("--env", options->request.environment,
                   "Set an environment variable for the program; may be repeated")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  cli::set_examples(
      *command,
      {{"weft trace -- rping -c -a 192.0.2.7", "into weft-PID.pcapng, for Wireshark"},
       {"weft trace -o /tmp/%p.pcapng -- PROGRAM", "into a file of this name"},
       {"weft trace --snap 128 --size 64 -- PROGRAM", "beginnings of frames, 64 MiB at most"}},
      "Each process that the program consists of writes a file of its own, with mode 0600, as "
      "long\n"
      "as it has connections or datagrams on weft; a name that is taken gets a number. At the end\n"
      "the files are named on standard error; packaging/wireshark decodes the datagrams. Signals\n"
      "are passed on; a program that has not ended a second after SIGINT or SIGTERM is killed. The "
      "exit\n"
      "status is the program's, 128 and the signal's number where one ended it, or one of 'weft "
      "run\n"
      "--help'.");
  command->callback([options, &program, &status] {
    options->request.command = program;
    if (options->request.command.empty()) throw CLI::RequiredError("PROGRAM");
    status = trace(*options);
  });
}

}  // namespace weft::tools
