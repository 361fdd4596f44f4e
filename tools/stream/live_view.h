// What a terminal shows of a side while it runs, and what figures say in words.
#pragma once

#include <string>

#include "stream/report.h"

namespace weft::stream {

struct TerminalSize {
  unsigned rows = 24;
  unsigned columns = 80;
};
// Of the one that stderr is; the usual one where it is none.
TerminalSize terminal_size();

// Lines that fit into it, each with its end; `load` is of CPU and power, `before` of a second ago.
std::string live_view(const Snapshot& now, const Snapshot& before, const std::string& load,
                      TerminalSize size);

double gbps(uint64_t bytes, double seconds);
// How late packets left, all and those of the latest stream, of a sender; empty of others.
std::string lateness_text(const Snapshot& s);
// A counter of all streams.
uint64_t sum_of(const Snapshot& s, const char* name);

}  // namespace weft::stream
