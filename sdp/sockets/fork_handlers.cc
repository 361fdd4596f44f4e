#include "sdp/sockets/fork_handlers.h"

#include <atomic>
#include <chrono>
#include <tuple>

#include "sdp/sockets/library.h"

namespace weft::sdp {
namespace {

// This library has a handful, an adapter some more.
constexpr size_t kMost = 32;
// The loop's thread does not rest where it waits for what a handler has locked.
constexpr std::chrono::milliseconds kMostUntilRest{20};

// Written once each. Not behind a lock, which a thread that adds one could have in the child.
struct Entry {
  ForkHandlers::Of handlers;
  std::atomic<bool> written{false};
};
constinit std::array<Entry, kMost> g_entries;
constinit std::atomic<size_t> g_next{0};

}  // namespace

bool ForkHandlers::add(const Of& handlers) {
  const size_t at = g_next.fetch_add(1);
  if (at >= kMost) return false;
  g_entries[at].handlers = handlers;
  g_entries[at].written.store(true, std::memory_order_release);
  return true;
}

ForkHandlers::Fork::Fork() {
  static_assert(std::tuple_size_v<decltype(all_)> == kMost);
  for (const Entry& entry : g_entries) {
    if (entry.written.load(std::memory_order_acquire)) all_[count_++] = entry.handlers;
  }
  for (size_t i = count_; i-- > 0;) {
    if (all_[i].before != nullptr) all_[i].before();
  }
  // libc has the locks of malloc(3) during fork(2). Here the library's thread keeps out of it, or
  // the child could wait for ever for a lock that this thread had.
  if (Library* library = Library::existing()) rest_ = library->rest_loop(kMostUntilRest);
}

void ForkHandlers::Fork::over_in_parent() {
  rest_.reset();
  for (size_t i = 0; i < count_; ++i) {
    if (all_[i].in_parent != nullptr) all_[i].in_parent();
  }
}

void ForkHandlers::Fork::over_in_child() {
  for (size_t i = 0; i < count_; ++i) {
    if (all_[i].in_child != nullptr) all_[i].in_child();
  }
}

}  // namespace weft::sdp
