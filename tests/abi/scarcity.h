// A process that lacks threads or memory: pthread_create(3) and malloc(3) of the whole program, the
// libraries' too, pass through scarcity.cc, and find what there is until a test says otherwise.
#pragma once

#include <atomic>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define WEFT_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define WEFT_SANITIZER 1
#endif
#endif

namespace weft::test {

// pthread_create(3) says EAGAIN, as under RLIMIT_NPROC, pids.max or RLIMIT_AS.
extern std::atomic<bool> no_threads;

// Of the calling thread: how many pieces of memory it gets until there is none; -1: as many as it
// wants. Not under a sanitizer, which allocates by itself.
extern thread_local long pieces_left;
// Only the one after those is missing.
extern thread_local bool one_is_missing;

}  // namespace weft::test
