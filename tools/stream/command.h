#pragma once

#include <CLI/CLI.hpp>

namespace weft::stream {

// Adds `weft stream send` and `weft stream recv`; the one that the user chose leaves its exit
// status in `status`.
void add_stream_command(CLI::App& weft, int& status);
// Its two halves.
void add_send_command(CLI::App& parent, int& status);
void add_recv_command(CLI::App& parent, int& status);

}  // namespace weft::stream
