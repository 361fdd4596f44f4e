// MSG_ZEROCOPY: each send has a number, and the error queue says when its memory is free again.
// Prints the same by TCP and by SDP.
//
//   sdp_zero_copy ADDRESS copied|in-place    what the reports are to say

#include <fcntl.h>
#include <linux/errqueue.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include "tests/sdp/ends.h"

namespace {

constexpr size_t kSize = 100'000;
constexpr int kMinute = 60'000;

std::vector<char> pattern(size_t size) {
  std::vector<char> bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 2654435761U >> 13);
  return bytes;
}

void allow(int fd) {
  const int one = 1;
  must(setsockopt(fd, SOL_SOCKET, SO_ZEROCOPY, &one, sizeof one) == 0, "SO_ZEROCOPY");
}

short revents_of(int fd, int timeout) {
  pollfd p{fd, 0, 0};
  must(poll(&p, 1, timeout) >= 0, "poll");
  return p.revents;
}

struct Told {
  ssize_t result = 0;
  int error = 0;
  int flags = 0;
  sock_extended_err report{};
  cmsghdr header{};
};

Told ask(int fd, size_t room = 100) {
  std::array<char, 100> control{};
  msghdr message{};
  message.msg_control = control.data();
  message.msg_controllen = room;
  Told told;
  told.result = recvmsg(fd, &message, MSG_ERRQUEUE);
  told.error = told.result < 0 ? errno : 0;
  told.flags = message.msg_flags;
  std::memcpy(&told.header, control.data(), sizeof told.header);
  std::memcpy(&told.report, control.data() + CMSG_LEN(0), sizeof told.report);
  return told;
}

struct Reports {
  bool in_order = true;
  bool copied = false;
  bool in_place = false;
};

// Adds those of numbers `first` to `last`, when they come.
void await(int fd, uint32_t first, uint32_t last, Reports& reports) {
  for (uint32_t next = first; next <= last;) {
    must((revents_of(fd, kMinute) & POLLERR) != 0, "a report");
    const Told told = ask(fd);
    if (told.result < 0) continue;
    reports.in_order = reports.in_order && told.report.ee_info == next &&
                       told.report.ee_data >= next && told.report.ee_data <= last;
    (told.report.ee_code == SO_EE_CODE_ZEROCOPY_COPIED ? reports.copied : reports.in_place) = true;
    next = told.report.ee_data + 1;
  }
}

// Reads all there is, and looks at it.
std::thread reader(int fd, const std::vector<char>& expected, bool& good) {
  return std::thread{[fd, &expected, &good] {
    std::vector<char> bytes(kSize);
    size_t done = 0;
    good = true;
    for (ssize_t n = 0; (n = recv(fd, bytes.data(), bytes.size(), 0)) > 0;) {
      for (ssize_t i = 0; i < n; ++i, ++done) {
        good = good && bytes[static_cast<size_t>(i)] == expected[done % expected.size()];
      }
    }
  }};
}

void without_being_asked(const char* address) {
  const Ends ends = connection(address);
  must(send(ends.client, "abc", 3, MSG_ZEROCOPY) == 3, "send");
  std::printf("without SO_ZEROCOPY: %s\n", std::strerror(ask(ends.client).error));
  allow(ends.client);
  must(send(ends.client, "abc", 3, 0) == 3, "send");
  std::printf("without the flag: %s, poll %d\n", std::strerror(ask(ends.client).error),
              revents_of(ends.client, 0));
}

// A peer that gets no processor in time does not read in place, and what it would have read is
// copied: that one send in a thousand is read in place shows enough.
void sends_that_block(const char* address, bool in_place) {
  const Ends ends = connection(address);
  const auto bytes = pattern(kSize);
  bool good = false;
  allow(ends.client);
  std::thread reads = reader(ends.server, bytes, good);
  Reports reports;
  for (uint32_t sent = 0; sent == 0 || (sent < 1000 && in_place && !reports.in_place); sent += 10) {
    for (int i = 0; i < 10; ++i) {
      must(send(ends.client, bytes.data(), kSize, MSG_ZEROCOPY) == kSize, "send");
    }
    await(ends.client, sent, sent + 9, reports);
  }
  const bool all = reports.in_order && reports.in_place == in_place;
  std::printf("sends that block: %s, then %s, poll %d\n", all ? "all reported" : "not as reported",
              std::strerror(ask(ends.client).error), revents_of(ends.client, 0));
  (void)shutdown(ends.client, SHUT_WR);
  reads.join();
  std::printf("sends that block: %s\n", good ? "as sent" : "not as sent");
}

void sends_that_do_not_block(const char* address) {
  const Ends ends = connection(address);
  const auto bytes = pattern(kSize);
  allow(ends.client);
  must(fcntl(ends.client, F_SETFL, O_NONBLOCK) == 0, "fcntl");
  uint32_t sent = 0;
  while (send(ends.client, bytes.data(), kSize, MSG_ZEROCOPY) > 0) ++sent;
  must(errno == EAGAIN && sent > 0, "send");
  bool good = false;
  std::thread reads = reader(ends.server, bytes, good);
  Reports reports;
  await(ends.client, 0, sent - 1, reports);
  const bool all = reports.in_order && reports.copied && !reports.in_place;
  std::printf("until there is no room: %s\n", all ? "all reported" : "not as reported");
  (void)shutdown(ends.client, SHUT_WR);
  reads.join();
}

void form(const char* address) {
  const Ends ends = connection(address);
  allow(ends.client);
  const auto one = [&](size_t room) {
    must(send(ends.client, "abc", 3, MSG_ZEROCOPY) == 3, "send");
    must((revents_of(ends.client, kMinute) & POLLERR) != 0, "a report");
    return ask(ends.client, room);
  };
  const Told whole = one(100);
  std::printf(
      "report: %zd, flags %x, level %d, type %d, length %zu, errno %u, origin %u, %u to %u\n",
      whole.result, whole.flags, whole.header.cmsg_level, whole.header.cmsg_type,
      static_cast<size_t>(whole.header.cmsg_len), whole.report.ee_errno, whole.report.ee_origin,
      whole.report.ee_info, whole.report.ee_data);
  const Told cut = one(CMSG_LEN(8));
  std::printf("without room: %zd, flags %x, length %zu\n", cut.result, cut.flags,
              static_cast<size_t>(cut.header.cmsg_len));
  must(send(ends.client, "abc", 3, MSG_ZEROCOPY) == 3, "send");
  must((revents_of(ends.client, kMinute) & POLLERR) != 0, "a report");
  char byte = 0;
  const ssize_t first = recv(ends.client, &byte, 1, MSG_ERRQUEUE);
  std::printf("recv: %zd, and again %zd\n", first, recv(ends.client, &byte, 1, MSG_ERRQUEUE));
}

// A thread that sleeps until there is a report.
void somebody_waits(const char* address) {
  const Ends ends = connection(address);
  allow(ends.client);
  std::atomic<long> thread{0};
  short seen = 0;
  std::thread waits{[&] {
    thread = ::syscall(SYS_gettid);
    seen = revents_of(ends.client, kMinute);
  }};
  wait_until_sleeps_in_a_call(thread);
  must(send(ends.client, "abc", 3, MSG_ZEROCOPY) == 3, "send");
  waits.join();
  std::printf("poll that slept: %d\n", seen);
}

void by_epoll(const char* address) {
  const Ends ends = connection(address);
  allow(ends.client);
  const int epoll = epoll_create1(0);
  epoll_event event{.events = EPOLLIN | EPOLLET, .data = {.u64 = 77}};
  must(epoll_ctl(epoll, EPOLL_CTL_ADD, ends.client, &event) == 0, "epoll_ctl");
  for (int i = 0; i < 2; ++i) {
    must(send(ends.client, "abc", 3, MSG_ZEROCOPY) == 3, "send");
    epoll_event got{};
    must(epoll_wait(epoll, &got, 1, kMinute) == 1, "epoll_wait");
    std::printf("epoll: %x of %d", got.events & (EPOLLERR | EPOLLIN),
                static_cast<int>(got.data.u64));
    must(ask(ends.client).result == 0, "recvmsg");
    std::printf(", then %d\n", epoll_wait(epoll, &got, 1, 0));
  }
  event.events = 0;
  must(epoll_ctl(epoll, EPOLL_CTL_DEL, ends.client, &event) == 0, "epoll_ctl");
  must(send(ends.client, "abc", 3, MSG_ZEROCOPY) == 3, "send");
  must((revents_of(ends.client, kMinute) & POLLERR) != 0, "a report");
  std::printf("epoll without it: %d\n", epoll_wait(epoll, &event, 1, 0));
}

// Since a child has the descriptor, too, its bytes are relayed.
void behind_a_fork(const char* address) {
  const Ends ends = connection(address);
  allow(ends.client);
  const pid_t child = fork();
  if (child == 0) _exit(0);
  must(waitpid(child, nullptr, 0) == child, "waitpid");
  must(send(ends.client, "abc", 3, MSG_ZEROCOPY) == 3, "send");
  std::array<char, 3> bytes{};
  const ssize_t n = recv(ends.server, bytes.data(), bytes.size(), MSG_WAITALL);
  must((revents_of(ends.client, kMinute) & POLLERR) != 0, "a report");
  const Told told = ask(ends.client);
  std::printf("behind a fork: %zd bytes, %u to %u\n", n, told.report.ee_info, told.report.ee_data);
}

}  // namespace

int main(int arguments, char** argument) {
  if (arguments != 3) return 2;
  without_being_asked(argument[1]);
  sends_that_block(argument[1], std::strcmp(argument[2], "in-place") == 0);
  sends_that_do_not_block(argument[1]);
  form(argument[1]);
  somebody_waits(argument[1]);
  by_epoll(argument[1]);
  behind_a_fork(argument[1]);
  return 0;
}
