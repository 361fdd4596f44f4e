// The signals that a command which waits for its program takes one by one.
#pragma once

#include <array>
#include <csignal>

namespace weft::tools {

// Those that are passed on to the program, and SIGCHLD: blocked as long as this is there.
class HeldSignals {
 public:
  HeldSignals() {
    sigemptyset(&all_);
    sigaddset(&all_, SIGCHLD);
    for (const int signal : kPassedOn) sigaddset(&all_, signal);
    sigprocmask(SIG_BLOCK, &all_, &mask_before_);
    // Ignored, as it may be from whoever started us, it would never come.
    struct sigaction usual {};
    usual.sa_handler = SIG_DFL;
    sigaction(SIGCHLD, &usual, &child_before_);
  }
  ~HeldSignals() { restore(); }
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

  // As it was before. For the child that becomes the program, too.
  void restore() const {
    sigaction(SIGCHLD, &child_before_, nullptr);
    sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
  }
  siginfo_t next() const {
    siginfo_t info{};
    while (sigwaitinfo(&all_, &info) < 0) {
    }
    return info;
  }

 private:
  static constexpr std::array kPassedOn = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};

  sigset_t all_{};
  sigset_t mask_before_{};
  struct sigaction child_before_ {};
};

}  // namespace weft::tools
