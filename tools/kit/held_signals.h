// The signals of a command that waits for its program, which gets them.
#pragma once

#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <ctime>

namespace weft::kit {

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
  // Waits until `child` has ended, which is left to be collected, and passes signals on to it.
  // Returns 0; or the number of the first SIGINT or SIGTERM, if the child has not ended
  // kProgramLimit after that.
  int wait_for(pid_t child) const {
    int asked = 0;
    timespec since{};
    while (!has_ended(child)) {
      siginfo_t info{};
      if (asked == 0) {
        if (sigwaitinfo(&all_, &info) < 0) continue;
      } else {
        const timespec left = left_since(since);
        if (sigtimedwait(&all_, &info, &left) < 0) {
          if (errno == EINTR) continue;
          return asked;
        }
      }
      if (info.si_signo == SIGCHLD) continue;
      // What somebody sends to this process is meant for the program. What the terminal sends has
      // reached it already.
      if (info.si_code <= 0) kill(child, info.si_signo);
      if (asked == 0 && (info.si_signo == SIGINT || info.si_signo == SIGTERM)) {
        asked = info.si_signo;
        clock_gettime(CLOCK_MONOTONIC, &since);
      }
    }
    return 0;
  }

 private:
  static bool has_ended(pid_t pid) {
    siginfo_t info{};
    return waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT | WNOHANG) == 0 &&
           info.si_pid == pid;
  }
  // Of kProgramLimit.
  static timespec left_since(const timespec& since) {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    const int64_t passed =
        (now.tv_sec - since.tv_sec) * 1'000'000'000LL + (now.tv_nsec - since.tv_nsec);
    const int64_t limit = std::chrono::nanoseconds{kProgramLimit}.count();
    const int64_t left = std::max<int64_t>(limit - passed, 0);
    return {.tv_sec = left / 1'000'000'000, .tv_nsec = left % 1'000'000'000};
  }

  // As the help of the commands has it.
  static constexpr std::chrono::seconds kProgramLimit{1};
  static constexpr std::array kPassedOn = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};

  sigset_t all_{};
  sigset_t mask_before_{};
  struct sigaction child_before_ {};
};

}  // namespace weft::kit
