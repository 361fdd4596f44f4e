// Standard output of weft(1): a pipe that is closed ends it without a word, with SIGPIPE (status
// 141 in a shell), as it ends cat(1). Everything else that cannot be written is an error.
#pragma once

#include <string_view>

namespace weft::cli {

// At the start of the program: SIGPIPE does what it does by default, even if the parent ignored it.
void end_quietly_on_closed_pipe();
// Before another program takes over this process or a child of it: as the parent had it.
void restore_sigpipe();

// At the start of the program: a standard stream that is closed stays so, for this program by a
// descriptor that can be neither read nor written. Else the next file that is opened would have its
// number. Programs that follow find it closed.
void hold_closed_streams();

// Prints `text` at once, behind what was printed before. Throws nothing: that standard output does
// not take it is for finish_output() to tell.
void write_output(std::string_view text);

// At the end: writes what is left. Throws std::runtime_error if standard output could not take it
// all, for example on a full disk.
void finish_output();

}  // namespace weft::cli
