#pragma once

#include <CLI/CLI.hpp>

namespace weft::doctor {

// Adds `weft doctor`, which leaves its exit status in `status`.
void add_doctor_command(CLI::App& weft, int& status);

}  // namespace weft::doctor
