// Parts of tests that need a process of their own. A child of fork(2) has an adapter of its own
// (spec/abi 7).
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <thread>

namespace weft::test {

// Runs `child` in a child process: its result, less than 256, which is the number of the check that
// failed, or 0; the negative number of the signal that ended it. One that takes a minute is ended.
template <class Child>
int in_child(Child&& child) {
  std::fflush(nullptr);
  const pid_t pid = fork();
  if (pid == 0) {
    alarm(60);
    _exit(child());
  }
  int status = 0;
  EXPECT_EQ(waitpid(pid, &status, 0), pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}
// Makes a call in many child processes, each of them made while another thread of this process
// makes the same call: as in_child().
template <class Call>
int in_children_beside(Call&& call) {
  std::atomic<bool> over{false};
  std::thread other{[&] {
    while (!over) call();
  }};
  int failed = 0;
  for (int i = 0; i < 200 && failed == 0; ++i) {
    failed = in_child([&] {
      call();
      return 0;
    });
  }
  over = true;
  other.join();
  return failed;
}
// Which check failed, in the eight bits that an exit code has.
#define CHECK_IN_CHILD(n, condition) \
  do {                               \
    if (!(condition)) return n;      \
  } while (false)

}  // namespace weft::test
