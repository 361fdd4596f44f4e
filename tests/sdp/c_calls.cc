// Calls as only programs in C make them. Prints the same by TCP and by SDP.
//
//   sdp_c_calls ADDRESS

#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <thread>
#include <vector>

#include "tests/sdp/ends.h"

namespace {

// A name is cut to the room that the caller has for it, and its whole length is told.
void accept_names(const char* address) {
  for (const socklen_t room : {0, 8, 16, 28}) {
    const Listener listener = listener_at(address);
    const int client = socket(AF_INET, SOCK_STREAM, 0);
    const auto* at = reinterpret_cast<const sockaddr*>(&listener.at);
    must(connect(client, at, sizeof listener.at) == 0, "connect");
    constexpr unsigned char kUntouched = 0x55;
    std::array<unsigned char, 64> name{};
    name.fill(kUntouched);
    socklen_t size = room;
    const int server = accept(listener.fd, reinterpret_cast<sockaddr*>(name.data()), &size);
    must(server >= 0, "accept");
    const bool kept = std::all_of(name.begin() + room, name.end(),
                                  [](unsigned char byte) { return byte == kUntouched; });
    std::printf("accept with room for %u bytes: %u, what is behind is %s\n", room, size,
                kept ? "left alone" : "overwritten");
    for (const int fd : {client, server, listener.fd}) (void)close(fd);
  }
}

const char* outcome(ssize_t n) {
  return n >= 0 ? "taken" : std::strerror(errno);
}

// Of a pipe and a connection, which stay as they are, and of a file.
void send_files(const char* address) {
  const Ends ends = connection(address);
  const Ends other = connection(address);
  std::array<int, 2> ends_of_pipe{};
  must(pipe(ends_of_pipe.data()) == 0 && write(ends_of_pipe[1], "in a pipe", 9) == 9, "pipe");
  must(send(other.client, "on its way", 10, 0) == 10, "send");
  pollfd came{other.server, POLLIN, 0};
  must(poll(&came, 1, -1) == 1, "poll");
  std::array<char, 100> bytes{};
  for (const int from : {ends_of_pipe[0], other.server}) {
    std::printf("sendfile: %s", outcome(sendfile(ends.client, from, nullptr, 5)));
    const ssize_t n = read(from, bytes.data(), bytes.size());
    std::printf(", left: %.*s\n", static_cast<int>(n), bytes.data());
  }
  const int file = static_cast<int>(::syscall(SYS_memfd_create, "file", 0));
  must(write(file, "of a file", 9) == 9 && lseek(file, 3, SEEK_SET) == 3, "memfd_create");
  std::printf("sendfile: %s", outcome(sendfile(ends.client, file, nullptr, 100)));
  const ssize_t n = recv(ends.server, bytes.data(), 6, MSG_WAITALL);
  std::printf(", received: %.*s, place: %ld\n", static_cast<int>(n), bytes.data(),
              static_cast<long>(lseek(file, 0, SEEK_CUR)));
}

constexpr size_t kMost = 4;

// Messages that are one behind the other, each of so many bytes.
struct Messages {
  Messages(char* bytes, const std::array<size_t, kMost>& sizes) {
    for (size_t i = 0; i < kMost; bytes += sizes[i++]) {
      pieces[i] = {bytes, sizes[i]};
      all[i].msg_hdr.msg_iov = &pieces[i];
      all[i].msg_hdr.msg_iovlen = 1;
    }
  }
  void print(const char* name, int done) const {
    std::printf("%s: %d", name, done);
    for (int i = 0; i < done; ++i) std::printf(", %u bytes", all[i].msg_len);
    std::printf("%s%s\n", done < 0 ? ", " : "", done < 0 ? std::strerror(errno) : "");
  }
  std::array<iovec, kMost> pieces{};
  std::array<mmsghdr, kMost> all{};
};

void send_and_receive_messages(const char* address) {
  const Ends ends = connection(address);
  char text[] = "abbcccddddeeeee";
  std::array<char, sizeof text> bytes{};
  const auto await = [&ends](int size) {
    for (int n = 0; n < size;) must(ioctl(ends.server, FIONREAD, &n) == 0, "FIONREAD");
  };
  Messages sent{text, {1, 2, 3, 4}};
  sent.print("sendmmsg", sendmmsg(ends.client, sent.all.data(), kMost, 0));
  await(10);
  Messages received{bytes.data(), {2, 3, 1, 10}};
  const auto receive = [&](const char* name, int flags, timespec* limit) {
    bytes.fill('-');
    const int n = recvmmsg(ends.server, received.all.data(), kMost, flags, limit);
    received.print(name, n);
    std::printf("%.10s\n", bytes.data());
  };
  receive("recvmmsg", 0, nullptr);
  receive("of none", MSG_DONTWAIT, nullptr);
  must(send(ends.client, text, 6, 0) == 6, "send");
  await(6);
  receive("all there are", MSG_DONTWAIT, nullptr);
  must(send(ends.client, text, 4, 0) == 4, "send");
  await(4);
  receive("at least one", MSG_WAITFORONE, nullptr);
  must(send(ends.client, text, 4, 0) == 4, "send");
  await(4);
  timespec limit{0, 1};
  receive("within a nanosecond", 0, &limit);
  std::printf("left: %ld s, %ld ns\n", limit.tv_sec, limit.tv_nsec);
  limit = {100, 0};
  receive("within a long time", MSG_DONTWAIT, &limit);
  std::printf("left: %s\n", limit.tv_sec == 99 ? "less" : "as much");
  limit = {0, 1'000'000'000};
  receive("within no time", MSG_DONTWAIT, &limit);
  must(shutdown(ends.client, SHUT_WR) == 0, "shutdown");
  receive("at the end", 0, nullptr);
  sent.print("behind the end", sendmmsg(ends.client, sent.all.data(), kMost, MSG_NOSIGNAL));
}

// A reset that comes behind the first message is the next call's to tell.
void reset_between_messages(const char* address) {
  const Ends ends = connection(address);
  must(send(ends.server, "unread", 6, 0) == 6, "send");
  must(send(ends.client, "abc", 3, 0) == 3, "send");
  pollfd came{ends.client, POLLIN, 0};
  must(poll(&came, 1, -1) == 1, "poll");
  std::atomic<long> thread{::syscall(SYS_gettid)};
  std::thread closer{[&] {
    wait_until_sleeps_in_a_call(thread);
    (void)close(ends.client);
  }};
  std::array<char, 12> bytes{};
  Messages received{bytes.data(), {3, 3, 3, 3}};
  received.print("recvmmsg", recvmmsg(ends.server, received.all.data(), kMost, 0, nullptr));
  closer.join();
  for (int i = 0; i < 2; ++i) {
    const ssize_t n = recv(ends.server, bytes.data(), bytes.size(), 0);
    std::printf("behind it: %zd%s\n", n, n < 0 && errno == ECONNRESET ? ", reset" : "");
  }
}

// A message that is not taken whole is the last one: the next one may not go in front of its rest.
void send_more_messages_than_fit(const char* address) {
  const Ends ends = connection(address);
  std::vector<char> much(64 << 20);
  Messages sent{much.data(), {1, 1, 1, 1}};
  sent.pieces[1].iov_len = much.size() - 1;
  const int n = sendmmsg(ends.client, sent.all.data(), kMost, MSG_DONTWAIT);
  std::printf("sendmmsg of much: %d, %s\n", n,
              sent.all[1].msg_len < sent.pieces[1].iov_len ? "in part" : "whole");
}

// With MSG_TRUNC bytes are counted, and thrown away by a call that takes them. The memory is left
// alone, and need not be there.
void count_bytes(const char* address) {
  const Ends ends = connection(address);
  must(send(ends.client, "0123456789", 10, 0) == 10, "send");
  std::array<char, 10> bytes{};
  must(recv(ends.server, bytes.data(), 10, MSG_PEEK | MSG_WAITALL) == 10, "recv");
  bytes.fill('-');
  const auto print = [&bytes](const char* name, ssize_t n) {
    std::printf("%s: %zd, %.10s\n", name, n, bytes.data());
  };
  const auto receive = [&](size_t size, int flags) {
    return recv(ends.server, bytes.data(), size, flags | MSG_DONTWAIT);
  };
  print("counted nowhere", recv(ends.server, nullptr, 100, MSG_PEEK | MSG_TRUNC | MSG_DONTWAIT));
  print("counted", receive(5, MSG_PEEK | MSG_TRUNC));
  print("thrown away", receive(3, MSG_TRUNC));
  print("thrown away from nowhere", recv(ends.server, nullptr, 2, MSG_TRUNC | MSG_DONTWAIT));
  print("looked at", receive(3, MSG_PEEK));
  print("received", receive(10, 0));
}

void print_call(const char* name, ssize_t n) {
  std::printf(" %s %zd%s%s", name, n, n < 0 ? " " : "", n < 0 ? std::strerror(errno) : "");
}

// A read(2) of none returns at once, a recv(2) of none waits until there is something.
void receive_no_bytes(int fd, const char* when) {
  std::printf("%s:", when);
  msghdr nothing{};
  iovec empty{nullptr, 0};
  print_call("recv", recv(fd, nullptr, 0, MSG_DONTWAIT));
  print_call("peek", recv(fd, nullptr, 0, MSG_DONTWAIT | MSG_PEEK));
  print_call("all", recv(fd, nullptr, 0, MSG_DONTWAIT | MSG_WAITALL));
  print_call("recvmsg", recvmsg(fd, &nothing, MSG_DONTWAIT));
  print_call("read", read(fd, nullptr, 0));
  print_call("readv", readv(fd, &empty, 1));
  std::printf("\n");
}

void send_no_bytes(int fd, const char* when) {
  std::printf("%s:", when);
  msghdr nothing{};
  iovec empty{nullptr, 0};
  print_call("send", send(fd, nullptr, 0, MSG_NOSIGNAL));
  print_call("sendmsg", sendmsg(fd, &nothing, MSG_NOSIGNAL));
  print_call("write", write(fd, nullptr, 0));
  print_call("writev", writev(fd, &empty, 1));
  std::printf("\n");
}

void move_no_bytes(const char* address) {
  const Ends ends = connection(address);
  receive_no_bytes(ends.server, "nothing there");
  std::atomic<long> thread{::syscall(SYS_gettid)};
  std::thread sender{[&] {
    wait_until_sleeps_in_a_call(thread);
    must(send(ends.client, "abc", 3, 0) == 3, "send");
  }};
  const ssize_t n = recv(ends.server, nullptr, 0, 0);
  sender.join();
  std::array<char, 10> bytes{};
  std::printf("waited: %zd, then %zd\n", n, recv(ends.server, bytes.data(), 2, MSG_DONTWAIT));
  receive_no_bytes(ends.server, "one byte there");
  std::printf("left: %zd\n", recv(ends.server, bytes.data(), 10, MSG_DONTWAIT));
  send_no_bytes(ends.client, "before the end");
  must(shutdown(ends.client, SHUT_WR) == 0, "shutdown");
  send_no_bytes(ends.client, "behind the end");
  std::printf("end: %zd\n", recv(ends.server, bytes.data(), 10, 0));
  receive_no_bytes(ends.server, "at the end");
}

// The time limit is that of the whole call, and does not begin anew with each byte that comes.
void wait_for_all_within_limit(const char* address) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kPause{50};
  const Ends ends = connection(address);
  const timeval limit{0, 200'000};
  must(setsockopt(ends.server, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) == 0, "SO_RCVTIMEO");
  std::atomic<bool> over{false};
  std::thread sender{[&] {
    while (!over) {
      must(send(ends.client, "a", 1, 0) == 1, "send");
      std::this_thread::sleep_for(kPause);
    }
  }};
  constexpr size_t kNeverAll = 40;
  std::array<char, kNeverAll> bytes{};
  const auto began = Clock::now();
  const ssize_t n = recv(ends.server, bytes.data(), bytes.size(), MSG_WAITALL);
  const bool early = Clock::now() - began < std::chrono::milliseconds{190};
  over = true;
  sender.join();
  std::printf("all within a limit: %s, %s\n", n > 0 && n < ssize_t{kNeverAll} ? "some" : "not some",
              early ? "too early" : "not too early");
  while (recv(ends.server, bytes.data(), bytes.size(), MSG_DONTWAIT) > 0) {
  }
  const ssize_t none = recv(ends.server, bytes.data(), bytes.size(), MSG_WAITALL);
  std::printf("none within it: %zd, %s\n", none, std::strerror(errno));
}

// A handler runs in this thread while `call` sleeps in it.
template <class Call>
ssize_t interrupted(Call call) {
  std::atomic<long> thread{::syscall(SYS_gettid)};
  std::thread sender{[&thread, caller = pthread_self()] {
    wait_until_sleeps(thread, true);
    (void)pthread_kill(caller, SIGUSR1);
  }};
  const ssize_t n = call();
  sender.join();
  return n;
}

// One that has moved something ends with that, though its handler lets calls go on.
void interrupt_in_the_middle(const char* address) {
  struct sigaction action {};
  action.sa_flags = SA_RESTART;
  action.sa_handler = [](int /*signal*/) {};
  must(sigaction(SIGUSR1, &action, nullptr) == 0, "sigaction");
  const Ends ends = connection(address);
  std::array<char, 10> bytes{};
  must(send(ends.client, "abc", 3, 0) == 3, "send");
  for (const int flag : std::array<int, 2>{MSG_PEEK, 0}) {
    const ssize_t n = interrupted(
        [&] { return recv(ends.server, bytes.data(), bytes.size(), MSG_WAITALL | flag); });
    std::printf("interrupted: %zd, %s\n", n, bytes.data());
  }
  // One that has nothing begins anew, and does not know of the handler any more.
  std::atomic<long> thread{::syscall(SYS_gettid)};
  std::thread sender{[&] {
    wait_until_sleeps(thread, true);
    (void)::syscall(SYS_tgkill, getpid(), thread.load(), SIGUSR1);
    wait_until_sleeps(thread, true);
    must(send(ends.client, "0123", 4, 0) == 4, "send");
    // Until they are taken.
    int waits = 0;
    do must(ioctl(ends.server, FIONREAD, &waits) == 0, "FIONREAD");
    while (waits > 0);
    wait_until_sleeps(thread, true);
    must(send(ends.client, "456789", 6, 0) == 6, "send");
  }};
  const ssize_t all = recv(ends.server, bytes.data(), bytes.size(), MSG_WAITALL);
  sender.join();
  std::printf("begun anew: %zd, %.10s\n", all, bytes.data());
  std::vector<char> much(64 << 20);
  for (size_t i = 0; i < much.size(); ++i) much[i] = static_cast<char>(i * 7 + i / 251);
  const ssize_t n = interrupted([&] { return send(ends.client, much.data(), much.size(), 0); });
  const bool part = n > 0 && n < static_cast<ssize_t>(much.size());
  std::printf("interrupted: %s\n", part ? "in part" : n < 0 ? std::strerror(errno) : "whole");
  (void)shutdown(ends.client, SHUT_WR);
  ssize_t came = 0;
  bool good = true;
  std::array<char, 10'000> some{};
  for (ssize_t got = 0; (got = recv(ends.server, some.data(), some.size(), 0)) > 0; came += got) {
    good &= std::memcmp(some.data(), much.data() + came, static_cast<size_t>(got)) == 0;
  }
  std::printf("came: %s\n", good && came == n ? "as sent" : "not as sent");
}

}  // namespace

int main(int arguments, char** argument) {
  if (arguments != 2) return 2;
  (void)std::signal(SIGPIPE, SIG_IGN);
  (void)std::setvbuf(stdout, nullptr, _IOLBF, 0);
  accept_names(argument[1]);
  send_files(argument[1]);
  send_and_receive_messages(argument[1]);
  reset_between_messages(argument[1]);
  send_more_messages_than_fit(argument[1]);
  count_bytes(argument[1]);
  move_no_bytes(argument[1]);
  wait_for_all_within_limit(argument[1]);
  interrupt_in_the_middle(argument[1]);
  return 0;
}
