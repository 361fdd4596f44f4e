// weft measure: runs a command and says what it took of the machine.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace weft::measure {

// `program` is what tools::take_program() gave. See weft/commands.h.
void add_measure_command(CLI::App& weft, const std::vector<std::string>& program, int& status);

}  // namespace weft::measure
