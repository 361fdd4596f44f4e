// A process that lacks threads or memory: pthread_create(3) and malloc(3) of the whole program, the
// libraries' too, pass through scarcity.cc, and find what there is until a test says otherwise.
#pragma once

#include <atomic>

#include "tests/support/sanitizer.h"

namespace weft::test {

// pthread_create(3) says EAGAIN, as under RLIMIT_NPROC, pids.max or RLIMIT_AS.
extern std::atomic<bool> no_threads;

// Of the calling thread: how many pieces of memory it gets until there is none; -1: as many as it
// wants. Not under a sanitizer, which allocates by itself.
extern thread_local long pieces_left;
// Only the one after those is missing.
extern thread_local bool one_is_missing;

// The same of another thread, by its number, where that is not 0: it lacks one piece after so many.
extern std::atomic<long> other_thread;
extern std::atomic<long> pieces_left_there;

}  // namespace weft::test
