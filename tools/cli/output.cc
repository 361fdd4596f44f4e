#include "cli/output.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string>

namespace weft::cli {
namespace {

struct sigaction inherited {};
// Why standard output first took no more: stdio does not remember.
std::atomic<int> first_error{0};

}  // namespace

void end_quietly_on_closed_pipe() {
  struct sigaction usual {};
  usual.sa_handler = SIG_DFL;
  sigaction(SIGPIPE, &usual, &inherited);
}

void restore_sigpipe() {
  sigaction(SIGPIPE, &inherited, nullptr);
}

void hold_closed_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) >= 0) continue;
    // The lowest number that is free, which is this one.
    (void)::open("/dev/null", (stream == STDIN_FILENO ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
  }
}

void write_output(std::string_view text) {
  errno = 0;
  // An empty one may have no memory at all.
  if (!text.empty()) (void)std::fwrite(text.data(), 1, text.size(), stdout);
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return;
  int none = 0;
  first_error.compare_exchange_strong(none, errno != 0 ? errno : EIO);
}

void finish_output() {
  write_output({});
  if (first_error == 0) return;
  throw std::runtime_error(std::string{"standard output: "} + std::strerror(first_error));
}

}  // namespace weft::cli
