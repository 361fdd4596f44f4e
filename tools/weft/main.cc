// weft(1): starts programs on weft and says what weft sees and what stands in its way.

#include <cstdio>
#include <exception>

#include "bench/command.h"
#include "doctor/command.h"
#include "measure/command.h"
#include "stream/command.h"
#include "weft/commands.h"
#include "weft/script.h"

namespace {

int run_command_line(std::vector<std::string> arguments) {
  const std::vector<std::string> program = weft::tools::take_program(arguments);
  CLI::App weft{"weft, an RDMA network adapter made of software", "weft"};
  weft.set_version_flag("--version", "weft " WEFT_VERSION, "Print the version and exit");
  weft.require_subcommand(1);
  weft.footer("'weft COMMAND --help' explains each command.");

  int status = 0;
  weft::tools::add_run_command(weft, program, status);
  weft::tools::add_trace_command(weft, program, status);
  weft::tools::add_info_command(weft, status);
  weft::doctor::add_doctor_command(weft, status);
  weft::tools::add_stat_command(weft, status);
  weft::measure::add_measure_command(weft, program, status);
  weft::bench::add_bench_command(weft, status);
  weft::stream::add_stream_command(weft, status);
  weft::tools::add_script_command(weft, status, "report",
                                  "Make a page with the paper's figures, from kept results",
                                  "report.py", weft::tools::words_of_weft(WEFT_VERSION));
  try {
    // CLI11 takes its words from the back.
    weft.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::ParseError& error) {
    // 0 for --help and --version; 2, the shell's number for wrong usage, for all else.
    return weft.exit(error) == 0 ? 0 : 2;
  }
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run_command_line({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "weft: %s\n", error.what());
    return 1;
  }
}
