// SIGINT and SIGTERM ask a side to come to an end: it tells the other one and reports.
#pragma once

namespace weft::stream {

// From now on these signals are only remembered.
void catch_stop_signals();
bool stop_asked();

}  // namespace weft::stream
