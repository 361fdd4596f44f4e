// A connection that one thread gives to others while another one is blocked in a call on it: all
// bytes of the call are moved, and nothing besides. Prints the same by TCP and by SDP.
//
//   sdp_passed_on ADDRESS

#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "tests/sdp/ends.h"

namespace {

// More than both sides hold.
constexpr size_t kMuch = 16 << 20;
constexpr size_t kLittle = 100'000;

char byte_at(size_t i) {
  return static_cast<char>(i * 2654435761U >> 13);
}

std::vector<char> pattern(size_t size) {
  std::vector<char> bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = byte_at(i);
  return bytes;
}

// How many there are until the end, if they are the pattern.
std::string received_by(int fd) {
  std::vector<char> bytes(1 << 16);
  size_t count = 0;
  for (ssize_t n = 0; (n = recv(fd, bytes.data(), bytes.size(), 0)) > 0;) {
    for (ssize_t i = 0; i < n; ++i, ++count) {
      if (bytes[static_cast<size_t>(i)] != byte_at(count)) {
        return "wrong from byte " + std::to_string(count);
      }
    }
  }
  return std::to_string(count) + " bytes";
}

void fork_and_wait() {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  int status = 0;
  (void)waitpid(child, &status, 0);
}

void by_fork(int /*fd*/) {
  fork_and_wait();
}

void by_message(int fd) {
  int pair[2];
  must(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0, "socketpair");
  pass(fd, pair[0]);
  (void)close(pair[0]);
  (void)close(pair[1]);
}

// The stream is not closed, for its descriptor is in use.
void by_stdio(int fd) {
  must(fdopen(fd, "w") != nullptr, "fdopen");
}

void by_splice(int fd) {
  int pipe_ends[2];
  must(pipe(pipe_ends) == 0, "pipe");
  (void)splice(pipe_ends[0], nullptr, fd, nullptr, 1, SPLICE_F_NONBLOCK);
  (void)close(pipe_ends[0]);
  (void)close(pipe_ends[1]);
}

void send_much(const char* address, const char* name, void (*pass_on)(int)) {
  const Ends ends = connection(address);
  const auto bytes = pattern(kMuch);
  std::atomic<long> thread{0};
  ssize_t sent = 0;
  std::thread sender{[&] {
    thread = ::syscall(SYS_gettid);
    sent = send(ends.client, bytes.data(), bytes.size(), 0);
    (void)shutdown(ends.client, SHUT_WR);
  }};
  wait_until_sleeps_in_a_call(thread);
  pass_on(ends.client);
  const std::string received = received_by(ends.server);
  sender.join();
  std::printf("%s: sent %zd, received %s\n", name, sent, received.c_str());
  (void)close(ends.server);
}

// Half of what it waits for is there by then.
void receive_all(const char* address) {
  const Ends ends = connection(address);
  const auto bytes = pattern(kLittle);
  std::vector<char> into(kLittle);
  std::atomic<long> thread{0};
  ssize_t received = 0;
  must(send(ends.client, bytes.data(), kLittle / 2, 0) == kLittle / 2, "send");
  std::thread receiver{[&] {
    thread = ::syscall(SYS_gettid);
    received = recv(ends.server, into.data(), into.size(), MSG_WAITALL);
  }};
  wait_until_sleeps_in_a_call(thread);
  fork_and_wait();
  must(send(ends.client, bytes.data() + kLittle / 2, kLittle / 2, 0) == kLittle / 2, "send");
  (void)shutdown(ends.client, SHUT_WR);
  receiver.join();
  std::printf("waits for all: %zd, %s\n", received, into == bytes ? "as sent" : "not as sent");
}

}  // namespace

int main(int arguments, char** argument) {
  if (arguments != 2) return 2;
  constexpr int kTimes = 4;
  for (int i = 0; i < kTimes; ++i) {
    send_much(argument[1], "fork", by_fork);
    send_much(argument[1], "message", by_message);
    send_much(argument[1], "stdio", by_stdio);
    send_much(argument[1], "splice", by_splice);
    receive_all(argument[1]);
  }
  return 0;
}
