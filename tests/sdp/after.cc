// What there is behind the end of a connection, or of half of it. Prints the same by TCP and by
// SDP.
//
//   sdp_after ADDRESS reset|half|memory|file

#include <fcntl.h>
#include <malloc.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/sendfile.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <vector>

#include "tests/sdp/ends.h"

namespace {

// The first question behind a reset is answered, though nobody has waited for the connection.
void reset(const char* address) {
  constexpr int kRounds = 50;
  constexpr short kSaid = POLLIN | POLLERR | POLLHUP;
  int said = 0;
  for (int round = 0; round < kRounds; ++round) {
    const Ends ends = connection(address);
    const linger at_once{1, 0};
    must(setsockopt(ends.client, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once) == 0, "linger");
    (void)close(ends.client);
    tcp_info info{};
    socklen_t size = sizeof info;
    do {
      must(getsockopt(ends.server, IPPROTO_TCP, TCP_INFO, &info, &size) == 0, "TCP_INFO");
    } while (info.tcpi_state != TCP_CLOSE);
    pollfd polled{ends.server, POLLIN, 0};
    if (poll(&polled, 1, 0) == 1 && polled.revents == kSaid) ++said;
    (void)close(ends.server);
  }
  std::printf("behind a reset poll says so: %d of %d\n", said, kRounds);
}

std::string switches_of(long thread) {
  std::ifstream status{"/proc/self/task/" + std::to_string(thread) + "/status"};
  std::string all;
  for (std::string line; std::getline(status, line);) {
    if (line.find("ctxt_switches") != std::string::npos) all += line;
  }
  return all;
}

// Sleeps, and does not wake up again and again.
void wait_until_rests(long thread) {
  if (thread == 0) return;
  constexpr int kTimes = 30;
  std::string before;
  for (int times = 0; times < kTimes;) {
    std::string now = switches_of(thread);
    times = sleeps(thread, true) && now == before ? times + 1 : 0;
    before = std::move(now);
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
}

// What the peer does not read yet waits; nobody is busy with it.
void half(const char* address) {
  const Ends ends = connection(address);
  FILE* file = fdopen(dup(ends.client), "r");
  must(file != nullptr, "fdopen");
  std::vector<char> bytes(1 << 16);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 13 + i / 251);
  size_t sent = 0;
  pollfd polled{ends.client, POLLOUT, 0};
  // Room may come for a moment, as what was sent goes on.
  const long thread = thread_of_library();
  for (bool full = false; !full;) {
    const ssize_t n = send(ends.client, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (n > 0) {
      sent += static_cast<size_t>(n);
    } else {
      wait_until_rests(thread);
      full = poll(&polled, 1, 0) == 0;
    }
  }
  (void)shutdown(ends.client, SHUT_WR);
  wait_until_rests(thread);
  std::printf("half closed: nobody is busy\n");
  size_t came = 0;
  for (ssize_t n = 1; n > 0; came += static_cast<size_t>(n)) {
    n = recv(ends.server, bytes.data(), bytes.size(), 0);
    must(n >= 0, "recv");
  }
  std::printf("then %s\n", came == sent ? "all comes" : "not all comes");
  (void)std::fclose(file);
}

// Of connections that have ended nothing stays for long.
void memory(const char* address) {
  constexpr int kConnections = 200;
  constexpr size_t kEach = 300;
  const auto use = [&](int count) {
    const Listener listener = listener_at(address);
    for (int i = 0; i < count; ++i) {
      const Ends ends = next_connection_to(listener);
      (void)close(ends.client);
      char byte = 0;
      (void)recv(ends.server, &byte, 1, 0);
      (void)close(ends.server);
    }
    (void)close(listener.fd);
  };
  use(20);
  const size_t before = mallinfo2().uordblks;
  use(kConnections);
  while (mallinfo2().uordblks > before + kConnections * kEach) {
    std::this_thread::sleep_for(std::chrono::milliseconds{20});
  }
  std::printf("memory: given back\n");
}

void* send_file(void* place) {
  const auto& ends = *static_cast<const Ends*>(place);
  const int file = memfd_create("file", MFD_CLOEXEC);
  const std::string content = "what is in the file";
  must(write(file, content.data(), content.size()) > 0, "write");
  off_t offset = 5;
  const ssize_t n = sendfile(ends.client, file, &offset, 1 << 20);
  std::printf("sendfile: %zd, up to %ld\n", n, static_cast<long>(offset));
  (void)close(file);
  return nullptr;
}

// By a thread that has little of a stack.
void file(const char* address) {
  constexpr size_t kStack = 64 << 10;
  Ends ends = connection(address);
  pthread_attr_t attributes;
  pthread_t thread{};
  (void)pthread_attr_init(&attributes);
  must(pthread_attr_setstacksize(&attributes, kStack) == 0, "stack");
  must(pthread_create(&thread, &attributes, send_file, &ends) == 0, "thread");
  (void)pthread_join(thread, nullptr);
  std::array<char, 100> came{};
  const ssize_t n = recv(ends.server, came.data(), came.size(), 0);
  std::printf("came: %.*s\n", static_cast<int>(n), came.data());
}

}  // namespace

int main(int arguments, char** argument) {
  if (arguments != 3) return 2;
  (void)std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const std::string_view mode = argument[2];
  if (mode == "reset") reset(argument[1]);
  if (mode == "half") half(argument[1]);
  if (mode == "memory") memory(argument[1]);
  if (mode == "file") file(argument[1]);
  return 0;
}
