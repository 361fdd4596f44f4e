// For death tests: what a process asks for once, such as an option, has to be there when it begins.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <exception>
#include <initializer_list>
#include <utility>

namespace weft::test {

// Runs `body` where NAME=VALUE stands in the environment; its exceptions end the process with 1.
template <class Body>
[[noreturn]] void with(std::initializer_list<std::pair<const char*, const char*>> environment,
                       Body&& body) {
  for (const auto& [name, value] : environment) setenv(name, value, 1);
  try {
    body();
  } catch (const std::exception& e) {
    (void)!write(STDERR_FILENO, e.what(), std::strlen(e.what()));
    _exit(1);
  }
  _exit(0);
}

}  // namespace weft::test
