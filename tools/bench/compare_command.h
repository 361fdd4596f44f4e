#pragma once

#include <CLI/CLI.hpp>

namespace weft::bench {

// `weft bench compare`.
void add_compare_command(CLI::App& bench, int& status);

}  // namespace weft::bench
