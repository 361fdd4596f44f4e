#include "sdp/sockets/fork_handlers.h"

#include <atomic>
#include <chrono>
#include <new>

#include "sdp/sockets/library.h"

namespace weft::sdp {
namespace {

// The loop's thread does not rest where it waits for what a handler has locked.
constexpr std::chrono::milliseconds kMostUntilRest{20};

// Written once each. Not behind a lock, which a thread that adds one could have in the child.
struct Entry {
  ForkHandlers::Of handlers;
  std::atomic<bool> written{false};
};
constinit std::array<Entry, ForkHandlers::kMost> g_entries;
constinit std::atomic<size_t> g_next{0};

// Of the fork that libc makes on this thread.
constinit thread_local ForkHandlers::Called t_called;

}  // namespace

bool ForkHandlers::add(const Of& handlers) {
  const size_t at = g_next.fetch_add(1);
  if (at >= kMost) return false;
  g_entries[at].handlers = handlers;
  g_entries[at].written.store(true, std::memory_order_release);
  return true;
}

ForkHandlers::Of ForkHandlers::of_libc() {
  return {.before = [] { t_called.before(); },
          .in_parent = [] { t_called.in_parent(); },
          .in_child = [] { t_called.in_child(); }};
}

void ForkHandlers::Called::before() {
  count = 0;
  for (const Entry& entry : g_entries) {
    if (entry.written.load(std::memory_order_acquire)) all[count++] = entry.handlers;
  }
  for (size_t i = count; i-- > 0;) {
    if (all[i].first != nullptr) all[i].first();
  }
  for (size_t i = count; i-- > 0;) {
    if (all[i].before != nullptr) all[i].before();
  }
}

void ForkHandlers::Called::in_parent() const {
  for (size_t i = 0; i < count; ++i) {
    if (all[i].in_parent != nullptr) all[i].in_parent();
  }
}

void ForkHandlers::Called::in_child() const {
  for (size_t i = 0; i < count; ++i) {
    if (all[i].in_child != nullptr) all[i].in_child();
  }
}

ForkHandlers::Fork::Fork() {
  called_.before();
  // libc has the locks of malloc(3) during fork(2). Here the library's thread keeps out of it, or
  // the child could wait for ever for a lock that this thread had.
  try {
    if (Library* library = Library::existing()) rest_ = library->rest_loop(kMostUntilRest);
  } catch (const std::bad_alloc&) {
    // It is rarely in it.
  }
}

void ForkHandlers::Fork::over_in_parent() {
  rest_.reset();
  called_.in_parent();
}

void ForkHandlers::Fork::over_in_child() {
  called_.in_child();
}

}  // namespace weft::sdp
