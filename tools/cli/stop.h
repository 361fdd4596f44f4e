// How a signal ends a command that has something to account for. Such a command calls
// catch_stop_signals() at its start. SIGINT, SIGTERM and SIGHUP are then the same for it:
//
//   first signal       stop_asked() is true. System calls of the main thread fail with EINTR, again
//                      and again until that thread has called stop_asked(). So a loop that calls it
//                      before it waits never misses a signal. The command ends by itself, with the
//                      status that its result has.
//   kStopLimit later   A command that has not ended is cut off: its last words are said, then the
//                      signal ends the process. A shell sees 130, 143 or 129. Time in which the
//                      process did not run (SIGSTOP, a busy machine) does not count.
//   second signal      The signal ends the process at once.
//
// A command that does not call catch_stop_signals() ends at the first signal, as any program does.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

namespace weft::cli {

// "Within a second", less the time for the last words and for the kernel to clear up.
inline constexpr std::chrono::milliseconds kStopLimit{700};

// Main thread, before there are other threads. Further calls do nothing. Throws std::runtime_error
// if no descriptor is left.
void catch_stop_signals();

// Any thread.
bool stop_asked();
// The first signal, or 0. Any thread.
int stop_signal();
// Readable from the first signal on; never read from. -1 before catch_stop_signals().
int stop_descriptor();
// Until when a wait may last that would end at `usual_ns` (CLOCK_MONOTONIC). After a signal that is
// some time before kStopLimit, which leaves time for an account. Any thread.
int64_t wait_until(int64_t usual_ns);

// `words` runs in a thread of its own when the command is cut off. The last call counts; an empty
// function withdraws it, and waits for words that run already. Any thread.
void set_last_words(std::function<void()> words);

}  // namespace weft::cli
