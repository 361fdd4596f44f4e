// What a signal does to a wait. The calls that weft stands in for are reads of the kernel's device
// files, which go on after a handler that was installed with SA_RESTART (signal(7)); poll(2) and
// epoll_wait(2), on which weft sleeps, never do.
#pragma once

namespace weft::port {

// After a call ended with EINTR: would read(2) have gone on? So unless some handler that this
// thread may have run is one that ends system calls. Which signal it was nobody tells: a handler
// for one time only (SA_RESETHAND) is gone by now and does not count.
bool signals_restart_calls();

}  // namespace weft::port
