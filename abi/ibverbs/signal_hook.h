// Programs that install a handler for SIGSEGV or SIGBUS after they have opened the device.
//
// Weft's own handler has to stay in front of theirs (port/memory_faults.h). So weft puts functions
// of its own in the place of sigaction(2) and signal(2), and the older names of the latter, in what
// the program and its libraries import: for these two signals they keep the program's action behind
// weft's, all else they pass on. Who installs a handler by the system call itself, or in a library
// that is loaded later, has his own alone again, and memory that is gone ends the process. The
// option no_hook leaves everything as it is.
#pragma once

namespace weft::abi {

// Does it for all objects that are loaded now; a call where nothing was loaded since the last one
// does nothing. Any thread. Takes locks of the dynamic loader, so the caller holds none.
void hook_signals() noexcept;

}  // namespace weft::abi
