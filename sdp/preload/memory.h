// No exception passes through the functions that stand in the place of libc's: the program's code
// knows none, and libc declares that many of them throw nothing.
#pragma once

#include <cerrno>
#include <new>

namespace weft::sdp {

// What `call` comes to: -1 with ENOMEM where there is no memory for it.
template <class Call>
auto or_no_memory(Call call) -> decltype(call()) {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    errno = ENOMEM;
    return -1;
  }
}

// For what libc's call goes on without. False: there was no memory for it.
template <class Call>
bool if_memory(Call call) {
  try {
    call();
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

}  // namespace weft::sdp
