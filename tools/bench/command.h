// The command `weft bench`.
#pragma once

#include <CLI/CLI.hpp>

namespace weft::bench {

// Adds itself to the command line and runs from its callback, which leaves the exit status in
// `status`: 0 when everything was measured, whatever the figures are, else 1.
void add_bench_command(CLI::App& weft, int& status);

}  // namespace weft::bench
