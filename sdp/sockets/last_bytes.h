// What a process has sent when it ends, or executes another program: it waits until that is on its
// way, as the kernel does for TCP.
#pragma once

namespace weft::sdp {

// The process ends. Nothing of the library can be used any more.
void await_last_bytes();
// Another program takes its place. That may come to nothing, and what is open goes on.
void await_bytes_so_far();

}  // namespace weft::sdp
