// What has to be done around a new process with memory of its own. For fork(2) libc calls what
// pthread_atfork(3) was told. It does not for a process that is made by the system call itself, by
// clone(3) or by _Fork(3); so this library's functions and the adapter's are kept here, too, and
// called in the same order (design/27). What the program has told libc of is left out, as libc
// does.
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
  using Handler = void (*)();
  struct Of {
    Handler before = nullptr;
    Handler in_parent = nullptr;
    Handler in_child = nullptr;
  };
  // False: there is no room for more.
  static bool add(const Of& handlers);

  // The call that makes the process stands between the two.
  class Fork {
   public:
    Fork();
    Fork(const Fork&) = delete;
    Fork& operator=(const Fork&) = delete;
    void over_in_parent();
    void over_in_child();

   private:
    std::array<Of, 32> all_;  // those that there were at the beginning
    size_t count_ = 0;
    std::unique_ptr<Loop::Rest> rest_;
  };
};

}  // namespace weft::sdp
