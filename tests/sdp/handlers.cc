// Handlers of signals that use connections, or leave the call that they interrupted. Prints what
// came of it, the same by TCP and by SDP.
//
//   sdp_handlers ADDRESS calls|jumps|exits|forks

#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <thread>

#include "tests/sdp/ends.h"

namespace {

constexpr int kHandlersRun = 2000;

int g_connection = -1;
volatile std::sig_atomic_t g_runs = 0;
volatile std::sig_atomic_t g_sent = 0;
sigjmp_buf g_begin;

void tick(int microseconds) {
  const itimerval each{{0, microseconds}, {0, microseconds}};
  (void)setitimer(ITIMER_REAL, &each, nullptr);
}

void send_one(int /*signal*/) {
  if (::send(g_connection, "h", 1, MSG_DONTWAIT) == 1) g_sent = g_sent + 1;
  g_runs = g_runs + 1;
}

void jump(int /*signal*/) {
  g_runs = g_runs + 1;
  siglongjmp(g_begin, 1);
}

void end(int /*signal*/) {
  g_runs = g_runs + 1;
  if (g_runs == kHandlersRun / 10) _exit(0);
}

// The first time the connection goes over to a relay, so each process forks once.
void fork_once(int /*signal*/) {
  tick(0);
  const pid_t child = fork();
  if (child == 0) _exit(0);
  int status = 0;
  (void)waitpid(child, &status, 0);
  g_runs = kHandlersRun;
}

// Until the other end is shut.
void count_bytes(int fd, long& count) {
  std::array<char, 4096> bytes{};
  for (ssize_t n = 0; (n = recv(fd, bytes.data(), bytes.size(), 0)) > 0;) count += n;
}

bool answers(const Ends& ends) {
  char byte = 0;
  return send(ends.client, "?", 1, 0) == 1 && recv(ends.server, &byte, 1, MSG_WAITALL) == 1 &&
         byte == '?';
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 3) return 2;
  const std::string_view mode{arguments[2]};
  const Ends worked = connection(arguments[1]);
  const Ends other = connection(arguments[1]);
  g_connection = worked.client;
  long received = 0;
  // Signals are the first thread's.
  sigset_t alarm;
  (void)sigemptyset(&alarm);
  (void)sigaddset(&alarm, SIGALRM);
  (void)pthread_sigmask(SIG_BLOCK, &alarm, nullptr);
  std::thread reader{count_bytes, worked.server, std::ref(received)};
  (void)pthread_sigmask(SIG_UNBLOCK, &alarm, nullptr);

  struct sigaction action {};
  action.sa_flags = SA_RESTART;
  action.sa_handler = mode == "calls"   ? send_one
                      : mode == "jumps" ? jump
                      : mode == "exits" ? end
                                        : fork_once;
  (void)sigaction(SIGALRM, &action, nullptr);
  (void)sigsetjmp(g_begin, 1);
  tick(100);
  static volatile long sent = 0;
  while (g_runs < kHandlersRun) {
    if (send(worked.client, "m", 1, 0) == 1) sent = sent + 1;
    char byte = 0;
    (void)recv(other.client, &byte, 1, MSG_DONTWAIT);
  }
  tick(0);
  std::printf("another connection: %s\n", answers(other) ? "good" : "bad");
  (void)shutdown(worked.client, SHUT_WR);
  reader.join();
  // A call that was left may have sent its byte or not.
  const bool all = mode == "jumps" ? received >= sent : received == sent + g_sent;
  std::printf("%s\n", all ? "all received" : "bytes are missing");
  return 0;
}
