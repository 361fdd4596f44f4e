// Memory in the functions that stand in the place of libc's. No exception passes through them: the
// program's code knows none, and libc declares that many of them throw nothing.
#pragma once

#include <cerrno>
#include <new>

#include "base/kept_errno.h"
#include "sdp/loop/handlers.h"

namespace weft::sdp {

// What `call` comes to: -1 with ENOMEM where there is no memory for it.
template <class Call>
auto or_no_memory(Call call) -> decltype(call()) {
  return keeping_errno([&]() -> decltype(call()) {
    try {
      return call();
    } catch (const std::bad_alloc&) {
      errno = ENOMEM;
      return -1;
    }
  });
}

// Before memory of the program's is read that may not be there, by a call that may be its first.
inline void guard_memory() {
  [[maybe_unused]] static const bool guards = (Handlers::guard_memory(), true);
}

// For what libc's call goes on without. False: there was no memory for it. errno stays as it is.
template <class Call>
bool if_memory(Call call) {
  const SameErrno same;
  try {
    call();
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

}  // namespace weft::sdp
