// Standard output of weft(1): a pipe that is closed ends it without a word, with SIGPIPE (status
// 141 in a shell), as it ends cat(1). Everything else that cannot be written is an error.
#pragma once

namespace weft::cli {

// At the start of the program: SIGPIPE does what it does by default, even if the parent ignored it.
void end_quietly_on_closed_pipe();
// Before another program takes over this process or a child of it: as the parent had it.
void restore_sigpipe();

// At the end: writes what is left. Throws std::runtime_error if standard output could not take it
// all, for example on a full disk.
void finish_output();

}  // namespace weft::cli
