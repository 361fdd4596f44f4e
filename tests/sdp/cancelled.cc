// A thread with a cancellation that is pending, in calls on a connection: what is a cancellation
// point ends it before anything is moved, and nothing else does. Prints the same by TCP and by SDP.
//
//   sdp_cancelled ADDRESS

#include <fcntl.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>

#include <array>
#include <atomic>
#include <string>

#include "tests/sdp/ends.h"

namespace {

struct Called {
  const char* name;
  long (*call)(const Ends&);
};

// ---- no cancellation points

long shut(const Ends& ends) {
  return shutdown(ends.client, SHUT_WR);
}

long put_over(const Ends& ends) {
  return dup2(ends.server, ends.client) == ends.client ? 0 : -1;
}

long ask_for_bytes(const Ends& ends) {
  int bytes = -1;
  return ioctl(ends.server, FIONREAD, &bytes) == 0 ? bytes : -1;
}

// A file that is larger than what both sides hold would wait, so it is small.
long send_file(const Ends& ends) {
  const int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  const long n = sendfile(ends.client, file, nullptr, 50'000);
  (void)close(file);
  return n;
}

long give_to_stdio(const Ends& ends) {
  return fdopen(ends.client, "w") != nullptr ? 0 : -1;
}

long close_all_of(const Ends& ends) {
  const auto fd = static_cast<unsigned>(ends.client);
  return close_range(fd, fd, 0);
}

long wait_by_epoll(const Ends& ends) {
  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  epoll_event event{};
  event.events = EPOLLIN | EPOLLOUT;
  return epoll_ctl(epoll, EPOLL_CTL_ADD, ends.client, &event);
}

long set_an_option(const Ends& ends) {
  const int one = 1;
  return setsockopt(ends.client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

// ---- cancellation points, which find three bytes

long receive(const Ends& ends) {
  std::array<char, 10> bytes{};
  return recv(ends.server, bytes.data(), bytes.size(), 0);
}

long read_some(const Ends& ends) {
  std::array<char, 10> bytes{};
  return read(ends.server, bytes.data(), bytes.size());
}

long send_some(const Ends& ends) {
  return send(ends.client, "more", 4, 0);
}

long write_some(const Ends& ends) {
  return write(ends.client, "more", 4);
}

long close_one(const Ends& ends) {
  return close(ends.client);
}

constexpr std::array kNone{
    Called{"shutdown", shut},           Called{"dup2", put_over},
    Called{"ioctl", ask_for_bytes},     Called{"sendfile", send_file},
    Called{"fdopen", give_to_stdio},    Called{"close_range", close_all_of},
    Called{"epoll_ctl", wait_by_epoll}, Called{"setsockopt", set_an_option},
};
constexpr std::array kPoints{
    Called{"recv", receive},     Called{"read", read_some},  Called{"send", send_some},
    Called{"write", write_some}, Called{"close", close_one},
};

struct Work {
  Ends ends;
  long (*call)(const Ends&) = nullptr;
  bool pending = false;  // before the call
  std::atomic<long> thread{0};
  std::atomic<bool> came_back{false};
  long result = 0;
};

void* work(void* argument) {
  auto& work = *static_cast<Work*>(argument);
  int old = 0;
  (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
  if (work.pending) (void)pthread_cancel(pthread_self());
  work.thread = ::syscall(SYS_gettid);
  (void)pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &old);
  work.result = work.call(work.ends);
  (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
  work.came_back = true;
  (void)pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &old);
  pthread_testcancel();
  return nullptr;
}

std::string end_of(pthread_t thread, const Work& work) {
  void* result = nullptr;
  (void)pthread_join(thread, &result);
  std::string text = result == PTHREAD_CANCELED ? "cancelled" : "not cancelled";
  if (work.came_back) text += " behind the call, which came to " + std::to_string(work.result);
  return text;
}

std::string cancelled_in(Work& work) {
  work.pending = true;
  pthread_t thread{};
  must(pthread_create(&thread, nullptr, ::work, &work) == 0, "pthread_create");
  return end_of(thread, work);
}

// All that is there until the end.
std::string left_at(int fd) {
  std::string text;
  std::array<char, 100> bytes{};
  for (ssize_t n = 0; (n = recv(fd, bytes.data(), bytes.size(), 0)) > 0;) {
    text.append(bytes.data(), static_cast<size_t>(n));
  }
  return text;
}

void call_with_three_bytes(const char* address, const Called& called, bool looks) {
  Work work;
  work.ends = connection(address);
  work.call = called.call;
  must(send(work.ends.client, "abc", 3, 0) == 3, "send");
  pollfd came{work.ends.server, POLLIN, 0};
  must(poll(&came, 1, -1) == 1, "poll");
  const std::string end = cancelled_in(work);
  std::printf("%s: %s", called.name, end.c_str());
  if (looks) {
    (void)shutdown(work.ends.client, SHUT_WR);
    std::printf(", left: %s", left_at(work.ends.server).c_str());
  }
  std::printf("\n");
}

// One that sleeps is cancelled there, and what comes later is another call's.
void sleep_in(const char* address) {
  Work work;
  work.ends = connection(address);
  work.call = receive;
  pthread_t thread{};
  must(pthread_create(&thread, nullptr, ::work, &work) == 0, "pthread_create");
  wait_until_sleeps_in_a_call(work.thread);
  (void)pthread_cancel(thread);
  const std::string end = end_of(thread, work);
  must(send(work.ends.client, "later", 5, 0) == 5, "send");
  (void)shutdown(work.ends.client, SHUT_WR);
  std::printf("asleep: %s, left: %s\n", end.c_str(), left_at(work.ends.server).c_str());
}

}  // namespace

int main(int arguments, char** argument) {
  if (arguments != 2) return 2;
  for (const Called& called : kNone) call_with_three_bytes(argument[1], called, false);
  for (const Called& called : kPoints) call_with_three_bytes(argument[1], called, true);
  sleep_in(argument[1]);
  return 0;
}
