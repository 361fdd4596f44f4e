// What another user of this host does, in a thread of the test: credentials belong to threads, and
// only the C library keeps those of a process alike.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <exception>
#include <system_error>
#include <thread>

namespace weft::test {

// Users that nobody is, on no machine that tests run on.
inline constexpr uid_t kSomeUser = 64'001;
inline constexpr uid_t kOtherUser = 64'002;

// Files, sockets and processes that `body` makes belong to `user`. Exceptions pass. Takes root.
template <class Body>
void as_user(uid_t user, Body&& body) {
  std::exception_ptr failure;
  std::thread thread{[&] {
    try {
      if (::syscall(SYS_setresuid, -1, user, -1) != 0) {
        throw std::system_error{errno, std::generic_category(), "setresuid"};
      }
      body();
    } catch (...) {
      failure = std::current_exception();
    }
  }};
  thread.join();
  if (failure) std::rethrow_exception(failure);
}

// May this process be others?
inline bool many_users() {
  try {
    as_user(kSomeUser, [] {});
    return ::geteuid() == 0;
  } catch (const std::system_error&) {
    return false;
  }
}

}  // namespace weft::test
