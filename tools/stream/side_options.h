// The options that `weft stream send` and `weft stream recv` share, and what both do before they
// begin.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

#include "stream/control.h"
#include "stream/report.h"

namespace weft::stream {

void add_transport_options(CLI::App& command, Transport& transport, std::string& library);
void add_report_options(CLI::App& command, ReportOptions& report);
// The UTC time that option `name` has. Wrong usage where `text` is none.
int64_t time_option(const std::string& name, const std::string& text);

// Fills in what was left out, and catches the signals that end a side. What weft's library is told
// too, unless the user told it something else: to take this address, if it is not empty.
void begin_side(std::string& library, ReportOptions& report, const std::string& address);

}  // namespace weft::stream
