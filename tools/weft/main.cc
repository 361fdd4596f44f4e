// weft(1): starts programs on weft and says what weft sees and what stands in its way.

#include <cstdio>
#include <exception>

#include "bench/command.h"
#include "cli/command_line.h"
#include "cli/output.h"
#include "doctor/command.h"
#include "kit/script.h"
#include "measure/command.h"
#include "stream/command.h"
#include "weft/commands.h"

namespace {

using weft::cli::chosen_name;

constexpr const char* kHelp = "help";

int run_command_line(std::vector<std::string> arguments) {
  std::vector<std::string> program;  // that is to be run, with its arguments
  int status = 0;
  CLI::App weft{"weft, an RDMA network adapter made of software", "weft"};
  weft.set_version_flag("-V,--version", "weft " WEFT_VERSION, "Print the version and exit");
  weft.require_subcommand(1);
  weft::cli::set_help(weft);
  weft.get_formatter()->label("SUBCOMMAND", "COMMAND");
  weft::cli::set_examples(weft,
                          {{"weft run -- ib_write_bw", "a server, on weft's libraries"},
                           {"weft run -- ib_write_bw 192.0.2.7", "its client, on another machine"},
                           {"weft help stream send", "what a command does, and its options"}});
  weft::tools::add_run_command(weft, program, status);
  weft::tools::add_trace_command(weft, program, status);
  weft::tools::add_info_command(weft, status);
  weft::doctor::add_doctor_command(weft, status);
  weft::tools::add_stat_command(weft, status);
  weft::measure::add_measure_command(weft, program, status);
  weft::bench::add_bench_command(weft, status);
  weft::stream::add_stream_command(weft, status);
  weft::kit::add_script_command(weft, status, "report",
                                "Make a page with the paper's figures, from kept results",
                                "report.py", weft::kit::words_of_weft(WEFT_VERSION));
  weft.add_subcommand(kHelp, "Explain a command: weft help COMMAND");
  weft::cli::refuse_empty_words(weft);
  try {
    if (!arguments.empty() && arguments.front() == kHelp) {
      arguments = weft::cli::words_for_help(weft, {arguments.begin() + 1, arguments.end()});
    }
    program = weft::tools::take_program(weft, arguments);
    // CLI11 takes its words from the back.
    weft.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
    weft::cli::finish_output();
  } catch (const CLI::ParseError& error) {
    return weft::cli::report(weft, error);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", chosen_name(weft).c_str(), error.what());
    return 1;
  }
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  weft::cli::hold_closed_streams();
  weft::cli::end_quietly_on_closed_pipe();
  try {
    return run_command_line({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "weft: %s\n", error.what());
    return 1;
  }
}
