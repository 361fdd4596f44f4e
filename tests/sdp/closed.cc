// A descriptor that is closed, and whose number is another file's, while a thread is in a call on
// it: the call goes on with what it began with, and the other file is left alone. The same where
// it is closed by the system call itself, as by libuv. Prints the same by TCP and by SDP.
//
//   sdp_closed ADDRESS

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tests/sdp/ends.h"

namespace {

// More than both sides hold.
constexpr size_t kMuch = 16 << 20;
constexpr size_t kHalf = 50'000;

std::vector<char> pattern(size_t size) {
  std::vector<char> bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 2654435761U >> 13);
  return bytes;
}

std::vector<char> all_of(int fd) {
  std::vector<char> all;
  std::vector<char> bytes(1 << 16);
  for (ssize_t n = 0; (n = recv(fd, bytes.data(), bytes.size(), 0)) > 0;) {
    all.insert(all.end(), bytes.data(), bytes.data() + n);
  }
  return all;
}

// The other one's end of a socket pair takes the place of `fd`.
int put_another_at(int fd) {
  std::array<int, 2> pair{};
  (void)close(fd);
  must(socketpair(AF_UNIX, SOCK_STREAM, 0, pair.data()) == 0, "socketpair");
  if (pair[0] != fd) must(dup2(pair[0], fd) == fd && close(pair[0]) == 0, "dup2");
  return pair[1];
}

std::string waiting_at(int fd) {
  std::array<char, 10'000> bytes{};
  const ssize_t n = recv(fd, bytes.data(), bytes.size(), MSG_DONTWAIT);
  return n < 0 ? "nothing" : std::to_string(n) + " bytes";
}

void sends(const char* address) {
  const Ends ends = connection(address);
  const int copy = dup(ends.client);
  const auto bytes = pattern(kMuch);
  std::atomic<long> thread{0};
  ssize_t sent = 0;
  std::thread sender{[&] {
    thread = ::syscall(SYS_gettid);
    sent = send(ends.client, bytes.data(), bytes.size(), 0);
    (void)shutdown(copy, SHUT_WR);
  }};
  wait_until_sleeps_in_a_call(thread);
  const int other = put_another_at(ends.client);
  const auto received = all_of(ends.server);
  sender.join();
  std::printf("send: %zd, %s; the other one got %s\n", sent,
              received == bytes ? "as sent" : "not as sent", waiting_at(other).c_str());
}

void receives(const char* address) {
  const Ends ends = connection(address);
  const int copy = dup(ends.server);
  const auto bytes = pattern(2 * kHalf);
  std::vector<char> into(bytes.size());
  std::atomic<long> thread{0};
  ssize_t received = 0;
  must(send(ends.client, bytes.data(), kHalf, 0) == kHalf, "send");
  std::thread receiver{[&] {
    thread = ::syscall(SYS_gettid);
    received = recv(ends.server, into.data(), into.size(), MSG_WAITALL);
  }};
  wait_until_sleeps_in_a_call(thread);
  const int other = put_another_at(ends.server);
  must(send(other, "abcdefgh", 8, 0) == 8, "send");
  must(send(ends.client, bytes.data() + kHalf, kHalf, 0) == kHalf, "send");
  receiver.join();
  std::printf("recv: %zd, %s; the other one has %s\n", received,
              into == bytes ? "as sent" : "not as sent", waiting_at(ends.server).c_str());
  (void)close(copy);
}

// Not by dup2(2) or the like, which the library would see.
int file_at(int fd) {
  std::vector<int> lower;
  int file = memfd_create("file", 0);
  for (; file != fd; file = memfd_create("file", 0)) {
    must(file >= 0, "memfd_create");
    // Another thread may have the number for a moment.
    if (file > fd) {
      (void)close(file);
    } else {
      lower.push_back(file);
    }
  }
  for (const int other : lower) (void)close(other);
  return file;
}

int put_file_at(int fd, std::string_view way) {
  if (way == "dup3") {
    const int file = memfd_create("file", 0);
    must(::syscall(SYS_dup3, file, fd, 0) == fd, "dup3");
    (void)close(file);
    return fd;
  }
  const long result =
      way == "close" ? ::syscall(SYS_close, fd) : ::syscall(SYS_close_range, fd, fd, 0);
  must(result == 0, "close");
  return file_at(fd);
}

void closes_by_system_call(const char* address) {
  constexpr int kTimes = 20;
  constexpr std::string_view kText = "0123456789";
  for (const char* way : {"close", "close_range", "dup3"}) {
    int right = 0;
    for (int i = 0; i < kTimes; ++i) {
      const Ends ends = connection(address);
      must(send(ends.server, "hello", 5, 0) == 5, "send");
      std::array<char, 10> bytes{};
      must(recv(ends.client, bytes.data(), 5, MSG_WAITALL) == 5, "recv");
      const int file = put_file_at(ends.client, way);
      const ssize_t written = write(file, kText.data(), kText.size());
      const ssize_t read_back = pread(file, bytes.data(), bytes.size(), 0);
      if (written == read_back && kText == std::string_view{bytes.data(), bytes.size()}) ++right;
      (void)close(file);
      (void)close(ends.server);
    }
    std::printf("%s by the system call: %d of %d files have what was written\n", way, right,
                kTimes);
  }
  const Listener listener = listener_at(address);
  must(::syscall(SYS_close, listener.fd) == 0, "close");
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  const int result =
      connect(fd, reinterpret_cast<const sockaddr*>(&listener.at), sizeof listener.at);
  std::printf("a listener that is closed so: %s\n", result == 0 ? "heard" : std::strerror(errno));
  (void)close(fd);
}

// By an instruction of the program's own, which no library sees.
long put_at(int from, int to) {
#ifdef __x86_64__
  long result = SYS_dup3;
  asm volatile("xor %%edx, %%edx; syscall"
               : "+a"(result)
               : "D"(from), "S"(to)
               : "rcx", "rdx", "r11", "memory");
  return result;
#else
  return ::syscall(SYS_dup3, from, to, 0);
#endif
}

// What has the number keeps its bytes, also where it is passed on before the library has seen that
// the connection is closed.
void passes_behind_system_call(const char* address) {
  constexpr int kTimes = 100;
  int right = 0;
  for (int i = 0; i < kTimes; ++i) {
    const Ends ends = connection(address);
    must(send(ends.server, "hello", 5, 0) == 5, "send");
    pollfd waited{ends.client, POLLIN, 0};
    must(poll(&waited, 1, -1) == 1, "poll");
    std::array<int, 2> pair{};
    must(socketpair(AF_UNIX, SOCK_STREAM, 0, pair.data()) == 0, "socketpair");
    must(send(pair[1], "abc", 3, 0) == 3, "send");
    must(put_at(pair[0], ends.client) == ends.client, "dup3");
    pass(ends.client, pair[0]);
    if (waiting_at(pair[0]) == "3 bytes") ++right;
    for (const int fd : {pair[0], pair[1], ends.client, ends.server}) (void)close(fd);
  }
  std::printf("passed on behind an own system call: %d of %d files have their bytes\n", right,
              kTimes);
}

// In a process of its own, so that it can be stopped: by SDP nobody answers then. Made before the
// library begins. Its port.
in_port_t serve(const char* address, pid_t& child) {
  int port[2];
  must(pipe(port) == 0, "pipe");
  child = fork();
  if (child == 0) {
    const Listener listener = listener_at(address);
    const in_port_t own = listener.at.sin_port;
    must(write(port[1], &own, sizeof own) == sizeof own, "write");
    for (;;) (void)accept(listener.fd, nullptr, nullptr);
  }
  in_port_t number = 0;
  must(read(port[0], &number, sizeof number) == sizeof number, "read");
  return number;
}

void connects(const char* address, in_port_t port, pid_t server) {
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = port;
  (void)inet_pton(AF_INET, address, &at.sin_addr);
  int status = 0;
  must(kill(server, SIGSTOP) == 0 && waitpid(server, &status, WUNTRACED) == server, "stop");
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  std::atomic<long> thread{0};
  std::atomic<bool> done{false};
  std::thread caller{[&] {
    thread = ::syscall(SYS_gettid);
    (void)connect(fd, reinterpret_cast<sockaddr*>(&at), sizeof at);
    done = true;
    while (done) std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }};
  // By TCP the kernel has answered.
  wait_until_sleeps(thread, true);
  const int other = put_another_at(fd);
  must(kill(server, SIGCONT) == 0, "continue");
  while (!done) std::this_thread::sleep_for(std::chrono::milliseconds{1});
  done = false;
  caller.join();
  must(send(other, "abc", 3, 0) == 3, "send");
  std::printf("connect: the other one has %s\n", waiting_at(fd).c_str());
}

// The library begins to hear SDP for the listener of a child that accepts there, on one thread, and
// another one closes it `microseconds` later. Whether somebody can still connect to the SDP port
// (spec/sdp 3.3: ports that the system chooses, less 30000).
bool is_heard_behind_its_end(const char* address, int microseconds) {
  const Listener listener = listener_at(address, Begins::later);
  const pid_t child = fork();
  if (child != 0) {
    int status = 0;
    (void)close(listener.fd);
    must(waitpid(child, &status, 0) == child && WIFEXITED(status), "child");
    return WEXITSTATUS(status) != 0;
  }
  // The library is there.
  (void)close(listener_at(address).fd);
  std::atomic<bool> begins{false};
  std::thread accepts{[&] {
    begins = true;
    (void)accept4(listener.fd, nullptr, nullptr, 0);
  }};
  while (!begins) {
  }
  const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds{microseconds};
  while (std::chrono::steady_clock::now() < until) {
  }
  (void)close(listener.fd);
  accepts.join();
  sockaddr_in at = listener.at;
  at.sin_port = htons(static_cast<in_port_t>(ntohs(at.sin_port) - 30'000));
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  _exit(::syscall(SYS_connect, fd, &at, sizeof at) == 0 ? 1 : 0);
}

// Its beginning takes some 100 us.
void listens(const char* address) {
  int heard = 0;
  for (int i = 0; i < 60; ++i) heard += is_heard_behind_its_end(address, 5 * i) ? 1 : 0;
  std::printf("listener: %d of 60 are heard behind their end\n", heard);
}

}  // namespace

int main(int arguments, char** argument) {
  if (arguments != 2) return 2;
  (void)std::signal(SIGPIPE, SIG_IGN);
  pid_t server = 0;
  const in_port_t port = serve(argument[1], server);
  sends(argument[1]);
  receives(argument[1]);
  connects(argument[1], port, server);
  closes_by_system_call(argument[1]);
  passes_behind_system_call(argument[1]);
  listens(argument[1]);
  (void)kill(server, SIGKILL);
  return 0;
}
