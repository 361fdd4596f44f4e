// For death tests in a network of their own, in which there is a loopback interface and what they
// make.
#pragma once

#include <sched.h>

#include <cstdlib>

#include "tests/support/narrow_path.h"
#include "tests/verbs/own_process.h"

namespace weft::test {

inline bool run_command(const char* command) {
  return std::system(command) == 0;  // NOLINT(cert-env33-c)
}

// As with(), with `set_up` for a shell done before. Status kNotHere where that cannot be.
template <class Body>
[[noreturn]] void in_own_network(
    const char* set_up, std::initializer_list<std::pair<const char*, const char*>> environment,
    Body&& body) {
  if ((::unshare(CLONE_NEWNET) != 0 && ::unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) ||
      !run_command(set_up)) {
    ::_exit(kNotHere);
  }
  with(environment, std::forward<Body>(body));
}

// What EXPECT_EXIT asks of it: all was as it should be, or `here` is false afterwards.
struct EndsWell {
  bool& here;
  bool operator()(int status) const {
    here = !(WIFEXITED(status) && WEXITSTATUS(status) == kNotHere);
    return !here || (WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
};

}  // namespace weft::test
