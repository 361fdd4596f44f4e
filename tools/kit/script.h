// Commands of weft that are written in Python: they lie beside its libraries.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace weft::kit {

// Adds the command `name` to `parent`. Its words, --help among them, are the script's: this process
// becomes Python with lib/weft/report/SCRIPT, `leading` and then these. `status` is set only when
// that cannot be done.
void add_script_command(CLI::App& parent, int& status, const char* name, const char* sentence,
                        const char* script, std::vector<std::string> leading);

// The leading words of a script that starts this program again, as often as it needs.
std::vector<std::string> words_of_weft(const char* version);

}  // namespace weft::kit
