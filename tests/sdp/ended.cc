// A process that ends, or executes another program, as soon as it has sent: all of it comes. Where
// it is killed nobody sees an end before that. Prints the same by TCP and by SDP.
//
//   sdp_ended ADDRESS

#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "tests/sdp/ends.h"

namespace {

constexpr const char* kProgram = "/bin/true";

char byte_at(size_t i) {
  return static_cast<char>(i * 2654435761U >> 13);
}

void leave(std::string_view way) {
  const std::array<char*, 2> all{const_cast<char*>("true"), nullptr};
  if (way == "execve") (void)execve(kProgram, all.data(), environ);
  if (way == "execv") (void)execv(kProgram, all.data());
  if (way == "execvp") (void)execvp("true", all.data());
  if (way == "execvpe") (void)execvpe("true", all.data(), environ);
  if (way == "execl") (void)execl(kProgram, "true", nullptr);
  if (way == "execlp") (void)execlp("true", "true", nullptr);
  if (way == "fexecve") (void)fexecve(open(kProgram, O_RDONLY | O_CLOEXEC), all.data(), environ);
  if (way == "SYS_execve") (void)::syscall(SYS_execve, kProgram, all.data(), environ);
  if (way == "SYS_exit_group") (void)::syscall(SYS_exit_group, 0);
  if (way == "exit") std::exit(0);
  if (way == "_exit") _exit(0);
  if (way == "quick_exit") std::quick_exit(0);
}

// As much as there is room for from `done` on. How much it is then.
size_t fill(int fd, size_t done) {
  std::array<char, 10'000> bytes{};
  for (;;) {
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = byte_at(done + i);
    const ssize_t n = send(fd, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (n < 0) return done;
    done += static_cast<size_t>(n);
  }
}

struct Child {
  Child() { must(pipe(ends.data()) == 0, "pipe"); }
  ~Child() {
    (void)close(ends[0]);
    (void)close(ends[1]);
  }
  void tell(size_t count) const { must(write(ends[1], &count, sizeof count) > 0, "write"); }
  size_t told() const {
    size_t count = 0;
    must(read(ends[0], &count, sizeof count) == sizeof count, "read");
    return count;
  }
  std::array<int, 2> ends{};
};

// Nothing is read before the child has sent what there is room for, or is gone.
template <class Send>
void receive_from_child(const char* address, const char* name, Send send_and_leave,
                        bool killed = false) {
  const Listener listener = listener_at(address);
  const Child child;
  const pid_t process = fork();
  must(process >= 0, "fork");
  if (process == 0) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const auto* at = reinterpret_cast<const sockaddr*>(&listener.at);
    must(connect(fd, at, sizeof listener.at) == 0, "connect");
    send_and_leave(fd, child);
    _exit(1);
  }
  const int fd = accept(listener.fd, nullptr, nullptr);
  must(fd >= 0, "accept");
  const size_t sent = child.told();
  siginfo_t gone{};
  if (killed) must(waitid(P_PID, process, &gone, WEXITED | WNOWAIT) == 0, "waitid");
  size_t count = 0;
  bool good = true;
  std::vector<char> bytes(1 << 16);
  ssize_t n = 0;
  while ((n = recv(fd, bytes.data(), bytes.size(), 0)) > 0) {
    for (size_t i = 0; i < static_cast<size_t>(n); ++i) good &= bytes[i] == byte_at(count + i);
    count += static_cast<size_t>(n);
  }
  const int error = n < 0 ? errno : 0;
  int status = 0;
  must(waitpid(process, &status, 0) == process, "waitpid");
  const bool reset = killed && error == ECONNRESET;
  const std::string lost =
      std::to_string(sent - count) + " bytes are lost, errno " + std::to_string(error);
  std::printf("%s: %d, %s\n", name, status,
              !good                    ? "not as sent"
              : count < sent && !reset ? lost.c_str()
              : killed                 ? "no end before all that was sent"
                                       : "all that was sent");
  (void)close(fd);
  (void)close(listener.fd);
}

}  // namespace

int main(int arguments, char** argument) {
  if (arguments != 2) return 2;
  (void)std::setvbuf(stdout, nullptr, _IOLBF, 0);
  for (const char* way : {"execve", "execv", "execvp", "execvpe", "execl", "execlp", "fexecve",
                          "SYS_execve", "SYS_exit_group", "exit", "_exit", "quick_exit"}) {
    receive_from_child(argument[1], way, [way](int fd, const Child& child) {
      child.tell(fill(fd, 0));
      (void)close(fd);
      leave(way);
    });
  }
  // The kernel closes it, when the program is another one.
  receive_from_child(argument[1], "not closed", [](int fd, const Child& child) {
    child.tell(fill(fd, 0));
    leave("execve");
  });
  receive_from_child(argument[1], "relayed", [](int fd, const Child& child) {
    const int copy = dup2(fd, STDIN_FILENO);
    (void)close(fd);
    child.tell(fill(copy, 0));
    (void)close(copy);
    leave("execve");
  });
  receive_from_child(
      argument[1], "killed",
      [](int fd, const Child& child) {
        child.tell(fill(fd, 0));
        (void)kill(getpid(), SIGKILL);
      },
      true);
  receive_from_child(argument[1], "no such program", [](int fd, const Child& child) {
    const std::array<char*, 2> all{const_cast<char*>("none"), nullptr};
    const char first = byte_at(0);
    must(send(fd, &first, 1, 0) == 1, "send");
    const bool refused = execv("/nonexistent/program", all.data()) != 0 && errno == ENOENT;
    const size_t sent = fill(fd, 1);
    child.tell(refused ? sent : sent + 1);
    (void)close(fd);
    _exit(0);
  });
  return 0;
}
