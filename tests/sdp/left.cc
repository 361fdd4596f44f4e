// A connect(2) that its thread leaves while a peer is silent: by a jump out of the handler of a
// signal, or because it is cancelled. What comes of the attempt then must not reach the stack that
// the thread had. Prints the same by TCP, where the peer's kernel answers at once. And a recv(2)
// or a send(2) that its thread leaves: its buffer is the program's again. And a connect(2) that a
// handler or a time limit ends, where the kernel does not answer either: it goes on by itself.
//
//   sdp_left ADDRESS jumps|cancelled|receives|waits|sends|interrupted|limited

#include <fcntl.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/time.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csetjmp>
#include <csignal>
#include <string_view>
#include <thread>
#include <vector>

#include "tests/sdp/ends.h"

namespace {

// Longer than SDP is tried.
constexpr auto kTried = std::chrono::milliseconds{600};

sockaddr_in g_silent{};
int g_listener = -1;  // there
std::atomic<long> g_thread{0};
sigjmp_buf g_begin;

// By the system call, for the library would hear SDP beside it.
int listener_at(sockaddr_in& at, int backlog = 5) {
  socklen_t size = sizeof at;
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  if (bind(fd, reinterpret_cast<sockaddr*>(&at), size) != 0 ||
      ::syscall(SYS_listen, fd, backlog) != 0) {
    (void)close(fd);
    return -1;
  }
  (void)getsockname(fd, reinterpret_cast<sockaddr*>(&at), &size);
  return fd;
}

// A server of TCP beside whose port somebody listens who says nothing to SDP (spec/sdp 3.3).
void begin_silent(const char* address, int backlog = 5) {
  for (int i = 0; i < 100; ++i) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    (void)inet_pton(AF_INET, address, &at.sin_addr);
    g_listener = listener_at(at, backlog);
    if (g_listener < 0) continue;
    const unsigned port = ntohs(at.sin_port);
    if (port < 32768 || port > 60999) continue;
    sockaddr_in beside = at;
    beside.sin_port = htons(static_cast<uint16_t>(port - 30000));
    if (listener_at(beside) < 0) continue;
    g_silent = at;
    return;
  }
  must(false, "listen");
}

void call_silent() {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  (void)connect(fd, reinterpret_cast<sockaddr*>(&g_silent), sizeof g_silent);
}

void jump(int /*signal*/) {
  siglongjmp(g_begin, 1);
}

// The same place, with other things in it, until the attempt is over.
__attribute__((noinline)) void use_the_stack() {
  std::array<volatile unsigned char, 65536> bytes;
  for (auto& byte : bytes) byte = 0xA5;
  std::this_thread::sleep_for(kTried);
}

void jump_out() {
  struct sigaction action {};
  action.sa_handler = jump;
  (void)sigaction(SIGALRM, &action, nullptr);
  if (sigsetjmp(g_begin, 1) == 0) {
    const itimerval soon{{0, 0}, {0, 50'000}};
    (void)setitimer(ITIMER_REAL, &soon, nullptr);
    call_silent();
    for (;;) (void)pause();
  }
  use_the_stack();
}

void* be_cancelled(void* /*nothing*/) {
  g_thread = ::syscall(SYS_gettid);
  call_silent();
  for (;;) (void)pause();
}

void cancel() {
  pthread_t thread{};
  void* result = nullptr;
  must(pthread_create(&thread, nullptr, be_cancelled, nullptr) == 0, "pthread_create");
  wait_until_sleeps(g_thread, true);
  (void)pthread_cancel(thread);
  (void)pthread_join(thread, &result);
  std::printf("%s\n", result == PTHREAD_CANCELED ? "cancelled" : "it came back");
  // The next thread gets that one's stack.
  std::thread{use_the_stack}.join();
}

// ---- connect(2) to a full listener, which answers nobody

int raw_connect(int fd) {
  return static_cast<int>(::syscall(SYS_connect, fd, &g_silent, sizeof g_silent));
}

// More than it takes.
std::array<int, 4> fill_listener() {
  std::array<int, 4> clients{};
  for (int& client : clients) {
    client = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    (void)raw_connect(client);
  }
  return clients;
}

void empty_listener(const std::array<int, 4>& clients) {
  for (const int client : clients) (void)close(client);
  (void)fcntl(g_listener, F_SETFL, O_NONBLOCK);
  while (::syscall(SYS_accept4, g_listener, nullptr, nullptr, 0) >= 0) {
  }
}

void nothing(int /*signal*/) {}

const char* name_of(int error) {
  switch (error) {
    case 0:
      return "connected";
    case EINTR:
      return "EINTR";
    case EALREADY:
      return "EALREADY";
    case EINPROGRESS:
    case ETIMEDOUT:  // of a client that may not go on by TCP
      return "over time";
    default:
      return "another error";
  }
}

int error_of_connect(int fd) {
  return connect(fd, reinterpret_cast<sockaddr*>(&g_silent), sizeof g_silent) == 0 ? 0 : errno;
}

void interrupt() {
  const auto clients = fill_listener();
  struct sigaction action {};
  action.sa_handler = nothing;
  (void)sigaction(SIGUSR1, &action, nullptr);
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  int error = 0;
  std::thread caller{[&] {
    g_thread = ::syscall(SYS_gettid);
    error = error_of_connect(fd);
  }};
  wait_until_sleeps(g_thread, true);
  (void)pthread_kill(caller.native_handle(), SIGUSR1);
  caller.join();
  std::printf("interrupted: %s, blocks: %s\n", name_of(error),
              (fcntl(fd, F_GETFL) & O_NONBLOCK) == 0 ? "yes" : "no");
  (void)fcntl(fd, F_SETFL, O_NONBLOCK);
  std::printf("again: %s\n", name_of(error_of_connect(fd)));
  empty_listener(clients);
  pollfd done{fd, POLLOUT, 0};
  must(poll(&done, 1, -1) == 1, "poll");
  socklen_t size = sizeof error;
  must(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0, "getsockopt");
  std::printf("later: %s\n", name_of(error));
}

void limit() {
  (void)fill_listener();
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  const timeval soon{0, 100'000};
  (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &soon, sizeof soon);
  std::printf("limited: %s\n", name_of(error_of_connect(fd)));
}

// 64 KB at a time, which a peer sends without end, with pauses or without.
void jump_out_of_receiving(const char* address, std::chrono::microseconds pause) {
  static std::array<char, 65536> bytes;
  constexpr int kTimes = 300;
  const Ends ends = connection(address);
  std::atomic<bool> over{false};
  // The signal is the other thread's.
  sigset_t alarm;
  (void)sigemptyset(&alarm);
  (void)sigaddset(&alarm, SIGALRM);
  (void)pthread_sigmask(SIG_BLOCK, &alarm, nullptr);
  std::thread sender{[&] {
    const std::vector<char> zeros(1 << 20);
    while (!over && send(ends.client, zeros.data(), zeros.size(), MSG_NOSIGNAL) > 0) {
      std::this_thread::sleep_for(pause);
    }
  }};
  (void)pthread_sigmask(SIG_UNBLOCK, &alarm, nullptr);
  struct sigaction action {};
  action.sa_handler = jump;
  (void)sigaction(SIGALRM, &action, nullptr);
  static volatile int times = 0;
  static volatile int spoilt = 0;
  while (times < kTimes) {
    if (sigsetjmp(g_begin, 1) == 0) {
      const itimerval soon{{0, 0}, {0, 100 + 17 * times % 400}};
      (void)setitimer(ITIMER_REAL, &soon, nullptr);
      for (;;) (void)recv(ends.server, bytes.data(), bytes.size(), 0);
    }
    times = times + 1;
    bytes.fill('x');
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
    if (std::count(bytes.begin(), bytes.end(), 'x') != 65536) spoilt = spoilt + 1;
  }
  over = true;
  (void)shutdown(ends.server, SHUT_RDWR);
  (void)close(ends.server);
  sender.join();
  std::printf("spoilt: %d\n", spoilt);
}

// The other way round: bytes that the program writes there behind the jump are none that were sent.
void jump_out_of_sending(const char* address) {
  static std::array<char, 256 << 10> bytes;
  constexpr int kTimes = 300;
  constexpr char kSpoilt = 'x';
  const Ends ends = connection(address);
  sigset_t alarm;
  (void)sigemptyset(&alarm);
  (void)sigaddset(&alarm, SIGALRM);
  (void)pthread_sigmask(SIG_BLOCK, &alarm, nullptr);
  long spoilt = 0;
  std::thread receiver{[&] {
    std::vector<char> into(1 << 20);
    for (ssize_t n = 0; (n = recv(ends.server, into.data(), into.size(), 0)) > 0;) {
      spoilt += std::count(into.begin(), into.begin() + n, kSpoilt);
    }
  }};
  (void)pthread_sigmask(SIG_UNBLOCK, &alarm, nullptr);
  struct sigaction action {};
  action.sa_handler = jump;
  (void)sigaction(SIGALRM, &action, nullptr);
  static volatile int times = 0;
  while (times < kTimes) {
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>('0' + i % 10);
    if (sigsetjmp(g_begin, 1) == 0) {
      const itimerval soon{{0, 0}, {0, 100 + 17 * times % 400}};
      (void)setitimer(ITIMER_REAL, &soon, nullptr);
      for (;;) (void)send(ends.client, bytes.data(), bytes.size(), 0);
    }
    times = times + 1;
    bytes.fill(kSpoilt);
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
  (void)shutdown(ends.client, SHUT_WR);
  receiver.join();
  std::printf("spoilt: %ld\n", spoilt);
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 3) return 2;
  if (std::string_view{arguments[2]} == "sends") {
    jump_out_of_sending(arguments[1]);
    return 0;
  }
  if (std::string_view{arguments[2]} == "receives") {
    jump_out_of_receiving(arguments[1], {});
    return 0;
  }
  if (std::string_view{arguments[2]} == "waits") {
    jump_out_of_receiving(arguments[1], std::chrono::microseconds{400});
    return 0;
  }
  const std::string_view mode{arguments[2]};
  const bool full = mode == "interrupted" || mode == "limited";
  begin_silent(arguments[1], full ? 0 : 5);
  // The library begins with the first connection, and not in a call that is left.
  (void)connection(arguments[1]);
  if (mode == "jumps") {
    jump_out();
  } else if (mode == "cancelled") {
    cancel();
  } else if (mode == "interrupted") {
    interrupt();
  } else {
    limit();
  }
  const Ends after = connection(arguments[1]);
  char byte = 0;
  const bool good =
      send(after.client, "?", 1, 0) == 1 && recv(after.server, &byte, 1, 0) == 1 && byte == '?';
  std::printf("another connection: %s\n", good ? "good" : "bad");
  return 0;
}
