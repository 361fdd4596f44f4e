// What has to be done around a new process with memory of its own: this library's functions and the
// adapter's. For fork(2) libc calls them, by what of_libc() returns. It does not for a process that
// is made by the system call itself, by clone(3) or by _Fork(3); there Fork does (design/27), and
// what the program has told pthread_atfork(3) is left out, as libc does.
//
// Their order is that of pthread_atfork(3), but for `first`. That is for what waits for a thread,
// which may need what a `before` locks.
//
// Any thread; nothing of the library's is locked.
#pragma once

#include <array>
#include <cstddef>
#include <memory>

#include "sdp/loop/loop.h"

namespace weft::sdp {

class ForkHandlers {
 public:
  // This library has a handful, an adapter some more.
  static constexpr size_t kMost = 32;

  using Handler = void (*)();
  struct Of {
    Handler first = nullptr;  // ahead of each `before`
    Handler before = nullptr;
    Handler in_parent = nullptr;
    Handler in_child = nullptr;
  };
  // False: there is no room for more.
  static bool add(const Of& handlers);

  // For libc, once: `before`, `in_parent` and `in_child`, which call all.
  static Of of_libc();

  // Those that there are at the beginning of a fork.
  struct Called {
    std::array<Of, kMost> all;
    size_t count = 0;

    void before();
    void in_parent() const;
    void in_child() const;
  };

  // The call that makes the process stands between the two.
  class Fork {
   public:
    Fork();
    Fork(const Fork&) = delete;
    Fork& operator=(const Fork&) = delete;
    void over_in_parent();
    void over_in_child();

   private:
    Called called_;
    std::unique_ptr<Loop::Rest> rest_;
  };
};

}  // namespace weft::sdp
