#include "cli/output.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string>

namespace weft::cli {
namespace {

struct sigaction inherited {};

}  // namespace

void end_quietly_on_closed_pipe() {
  struct sigaction usual {};
  usual.sa_handler = SIG_DFL;
  sigaction(SIGPIPE, &usual, &inherited);
}

void restore_sigpipe() {
  sigaction(SIGPIPE, &inherited, nullptr);
}

void finish_output() {
  errno = 0;
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return;
  throw std::runtime_error(std::string{"standard output: "} +
                           std::strerror(errno != 0 ? errno : EIO));
}

}  // namespace weft::cli
