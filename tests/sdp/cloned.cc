// A server that handles each client in a process of its own, which it makes behind libc's back.
// Prints the same by TCP and by SDP.
//
//   sdp_cloned ADDRESS syscall|clone3|own_stack|_Fork|shared
//
// Each child answers its client, and makes a connection of its own to the server. `shared`: it has
// the server's memory (CLONE_VM, CLONE_VFORK) and only ends; the server answers.

#include <linux/sched.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/sdp/ends.h"

namespace {

constexpr int kClients = 30;
constexpr int kGood = 7;  // exit status
constexpr size_t kStack = 256 << 10;

const sockaddr* place_of(const Listener& listener) {
  return reinterpret_cast<const sockaddr*>(&listener.at);
}

std::string data(int client, size_t bytes) {
  std::string all(bytes, '\0');
  for (size_t i = 0; i < bytes; ++i) {
    all[i] = static_cast<char>((i * 7 + i / 251 + static_cast<size_t>(client) * 31) & 0xff);
  }
  return all;
}

std::string request(int client) {
  return data(client, 100 + static_cast<size_t>(client) * 997);
}

// Not what was asked.
std::string answer(const std::string& asked) {
  std::string all = asked + asked;
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<char>(all[i] ^ (i % 253));
  return all;
}

std::string read_to_end(int fd) {
  std::string all;
  std::vector<char> some(32 << 10);
  ssize_t n = 0;
  while ((n = read(fd, some.data(), some.size())) > 0)
    all.append(some.data(), static_cast<size_t>(n));
  return n == 0 ? all : "broken";
}

bool write_all(int fd, const std::string& all) {
  for (size_t done = 0; done < all.size();) {
    const ssize_t n = write(fd, all.data() + done, all.size() - done);
    if (n <= 0) return false;
    done += static_cast<size_t>(n);
  }
  return true;
}

// The client: a process that is no child made in one of these ways.
[[noreturn]] void ask_all(const Listener& server) {
  int right = 0;
  for (int i = 0; i < kClients; ++i) {
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    must(connect(fd, place_of(server), sizeof server.at) == 0, "connect");
    const std::string asked = request(i);
    must(write_all(fd, asked) && shutdown(fd, SHUT_WR) == 0, "write");
    if (read_to_end(fd) == answer(asked)) ++right;
    (void)close(fd);
  }
  std::printf("right answers: %d\n", right);
  (void)std::fflush(stdout);
  _exit(right == kClients ? 0 : 1);
}

bool serve(int connection) {
  return write_all(connection, answer(read_to_end(connection)));
}

// In a child. What it listens at is the server's.
int serve_and_report(int connection, const Listener& reports) {
  const bool good = serve(connection);
  (void)close(connection);
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  if (connect(fd, place_of(reports), sizeof reports.at) != 0) return 1;
  const bool told = write_all(fd, good ? "served" : "not served");
  (void)close(fd);
  return told ? kGood : 2;
}

int call(void* what) {
  return (*static_cast<const std::function<int()>*>(what))();
}

// `body` is run in a new process, which ends with what it returns.
pid_t make(std::string_view way, const std::function<int()>& body) {
  static std::vector<std::byte> stack(kStack);
  void* const top = stack.data() + stack.size();
  void* const argument = const_cast<std::function<int()>*>(&body);
  if (way == "own_stack") return clone(call, top, SIGCHLD, argument);
  if (way == "shared") return clone(call, top, CLONE_VM | CLONE_VFORK | SIGCHLD, argument);
  long child = -1;
  if (way == "syscall") {
    child = syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr);
  } else if (way == "clone3") {
    clone_args arguments{};
    arguments.exit_signal = SIGCHLD;
    child = syscall(SYS_clone3, &arguments, sizeof arguments);
  } else if (way == "_Fork") {
    child = _Fork();
  }
  if (child == 0) _exit(body());
  return static_cast<pid_t>(child);
}

int status_of(pid_t child) {
  int status = 0;
  must(waitpid(child, &status, 0) == child, "waitpid");
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

int main(int arguments, char** argument) {
  if (arguments != 3) return 2;
  const std::string_view way = argument[2];
  const Listener server = listener_at(argument[1]);
  const Listener reports = listener_at(argument[1]);
  const pid_t client = fork();
  if (client == 0) ask_all(server);
  int good = 0;
  int served = 0;
  for (int i = 0; i < kClients; ++i) {
    const int connection = accept(server.fd, nullptr, nullptr);
    must(connection >= 0, "accept");
    const bool shared = way == "shared";
    const pid_t child =
        make(way, [&] { return shared ? kGood : serve_and_report(connection, reports); });
    must(child > 0, "a new process");
    if (shared && serve(connection)) ++served;
    (void)close(connection);
    if (!shared) {
      const int report = accept(reports.fd, nullptr, nullptr);
      if (read_to_end(report) == "served") ++served;
      (void)close(report);
    }
    if (status_of(child) == kGood) ++good;
  }
  std::printf("children: %d, served: %d, client: %d\n", good, served, status_of(client));
  return 0;
}
