// The commands of weft(1). Each adds itself to the command line and, when the user chose it, runs
// from its callback, which leaves the exit status in `status`.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace weft::tools {

// Cuts "PROGRAM ARGUMENT..." off `arguments`, which are weft's own without the program name. For
// `weft run`, `trace` and `measure` alone: the words after the first "--", or from the first word
// on that is neither an option of these nor its value. So no option of the program is ever taken
// for one of weft's.
std::vector<std::string> take_program(const CLI::App& weft, std::vector<std::string>& arguments);

// `program` holds what take_program() gave when the command runs.
void add_run_command(CLI::App& weft, const std::vector<std::string>& program, int& status);
void add_trace_command(CLI::App& weft, const std::vector<std::string>& program, int& status);
void add_info_command(CLI::App& weft, int& status);
void add_stat_command(CLI::App& weft, int& status);

}  // namespace weft::tools
