// Options that change what calls do, and questions that a socket of IP answers. Prints the same by
// TCP and by SDP.
//
//   sdp_obeyed ADDRESS

#include <fcntl.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <vector>

#include "tests/sdp/ends.h"

namespace {

std::vector<char> pattern(size_t size) {
  std::vector<char> bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 2654435761U >> 13);
  return bytes;
}

std::string value_of(int fd, int level, int name) {
  int value = -1;
  socklen_t size = sizeof value;
  if (getsockopt(fd, level, name, &value, &size) != 0) return std::strerror(errno);
  return std::to_string(value);
}

std::string address_of_loopback(int fd) {
  ifreq asked{};
  std::strcpy(asked.ifr_name, "lo");
  if (ioctl(fd, SIOCGIFADDR, &asked) != 0) return std::strerror(errno);
  std::array<char, INET_ADDRSTRLEN> text{};
  const auto* name = reinterpret_cast<const sockaddr_in*>(&asked.ifr_addr);
  return inet_ntop(AF_INET, &name->sin_addr, text.data(), text.size());
}

void questions(const char* address) {
  const Ends ends = connection(address);
  for (const int fd : {ends.client, ends.server}) {
    // TCP's segments are no larger than half of the peer's window, which changes.
    const int segment = std::stoi(value_of(fd, IPPROTO_TCP, TCP_MAXSEG));
    std::printf("SIOCGIFADDR %s, IP_MTU %s, TCP_MAXSEG %s\n", address_of_loopback(fd).c_str(),
                value_of(fd, IPPROTO_IP, IP_MTU).c_str(),
                segment > 20'000 && segment <= 65'535 ? "of the loopback" : "of another way");
    int none = 0;
    const int result = ioctl(fd, TCGETS, &none);
    std::printf("TCGETS: %d, %s\n", result, std::strerror(errno));
  }
}

void set_least(int fd, int bytes) {
  must(setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &bytes, sizeof bytes) == 0, "SO_RCVLOWAT");
}

struct Received {
  std::vector<char> bytes;
  ssize_t count = -2;
  int error = 0;
};

// A recv that is asleep when each of them comes. One of TCP that has taken some wakes up by as many
// as SO_RCVLOWAT again.
Received receive_behind_a_sleep(const Ends& ends, size_t room, int flags,
                                const std::vector<std::vector<char>>& parts) {
  Received got{std::vector<char>(room)};
  std::atomic<long> thread{0};
  std::thread receiver{[&] {
    thread = ::syscall(SYS_gettid);
    got.count = recv(ends.server, got.bytes.data(), room, flags);
    got.error = errno;
  }};
  for (const auto& part : parts) {
    wait_until_sleeps(thread, true);
    must(send(ends.client, part.data(), part.size(), 0) > 0, "send");
  }
  receiver.join();
  return got;
}

void send_and_await(const Ends& ends, const std::vector<char>& bytes) {
  const auto size = static_cast<int>(bytes.size());
  must(send(ends.client, bytes.data(), bytes.size(), 0) == size, "send");
  for (int n = 0; n < size;) must(ioctl(ends.server, FIONREAD, &n) == 0, "FIONREAD");
}

const char* as_sent(const Received& got, const std::vector<char>& sent) {
  return got.count > 0 &&
                 std::memcmp(got.bytes.data(), sent.data(), static_cast<size_t>(got.count)) == 0
             ? "as sent"
             : "not as sent";
}

void least(const char* address) {
  const auto all = pattern(3000);
  const auto part = [&all](size_t from, size_t to) {
    return std::vector<char>(all.begin() + static_cast<long>(from),
                             all.begin() + static_cast<long>(to));
  };
  for (const int flags : {0, int{MSG_PEEK}}) {
    Ends ends = connection(address);
    set_least(ends.server, 2000);
    std::printf("SO_RCVLOWAT %s\n", value_of(ends.server, SOL_SOCKET, SO_RCVLOWAT).c_str());
    Received got = receive_behind_a_sleep(ends, 3000, flags,
                                          {part(0, 1000), part(1000, 1500), part(1500, 2100)});
    std::printf("more room than that: %zd, %s\n", got.count, as_sent(got, all));
    ends = connection(address);
    set_least(ends.server, 2000);
    send_and_await(ends, part(0, 1200));
    got.count = recv(ends.server, got.bytes.data(), 1200, flags);
    std::printf("less room: %zd, %s\n", got.count, as_sent(got, all));
    // What does not wait takes what there is.
    send_and_await(ends, part(0, 10));
    std::vector<char> bytes(5000);
    std::printf(
        "without waiting: %s\n",
        recv(ends.server, bytes.data(), bytes.size(), flags | MSG_DONTWAIT) > 0 ? "some" : "none");
    ends = connection(address);
    set_least(ends.server, 2000);
    must(send(ends.client, all.data(), 700, 0) == 700 && shutdown(ends.client, SHUT_WR) == 0,
         "send");
    std::printf("the end: %zd\n", recv(ends.server, bytes.data(), bytes.size(), flags));
    ends = connection(address);
    set_least(ends.server, 2000);
    const timeval limit{0, 50'000};
    must(setsockopt(ends.server, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) == 0, "limit");
    must(send(ends.client, all.data(), 700, 0) == 700, "send");
    std::printf("a time limit: %zd\n", recv(ends.server, bytes.data(), bytes.size(), flags));
  }
  // Set before there is a connection.
  const Listener listener = listener_at(address);
  set_least(listener.fd, 1500);
  const int client = socket(AF_INET, SOCK_STREAM, 0);
  set_least(client, 1400);
  must(connect(client, reinterpret_cast<const sockaddr*>(&listener.at), sizeof listener.at) == 0,
       "connect");
  const int server = accept(listener.fd, nullptr, nullptr);
  std::printf("before: %s, %s\n", value_of(client, SOL_SOCKET, SO_RCVLOWAT).c_str(),
              value_of(server, SOL_SOCKET, SO_RCVLOWAT).c_str());
  const Received got =
      receive_behind_a_sleep({server, client}, 3000, 0, {part(0, 1000), part(1000, 1450)});
  std::printf("obeyed: %zd, %s\n", got.count, as_sent(got, all));
}

// It is refused by TCP before Linux 6.9, and never taken without effect.
void peeks_from(const char* address) {
  const Ends ends = connection(address);
  const int from = 3;
  std::array<char, 10> bytes{};
  must(send(ends.client, "0123456789", 10, 0) == 10, "send");
  bool good = false;
  if (setsockopt(ends.server, SOL_SOCKET, SO_PEEK_OFF, &from, sizeof from) == 0) {
    good = recv(ends.server, bytes.data(), 1, MSG_PEEK) == 1 && bytes[0] == '3';
  } else {
    good = errno == EOPNOTSUPP;
  }
  std::printf("SO_PEEK_OFF: %s\n", good ? "obeyed or refused" : "ignored");
}

size_t fill(int fd) {
  const auto bytes = pattern(1 << 16);
  size_t sent = 0;
  // TCP finds room at times behind an EAGAIN.
  for (int full = 0; full < 3;) {
    const ssize_t n = send(fd, bytes.data(), bytes.size(), MSG_DONTWAIT);
    sent += n > 0 ? static_cast<size_t>(n) : 0;
    full = n > 0 ? 0 : full + 1;
    if (n <= 0) std::this_thread::sleep_for(std::chrono::milliseconds{10});
  }
  return sent;
}

size_t read_all(int fd) {
  std::vector<char> bytes(1 << 16);
  size_t all = 0;
  for (ssize_t n = 0; (n = recv(fd, bytes.data(), bytes.size(), 0)) > 0;) {
    all += static_cast<size_t>(n);
  }
  return all;
}

// While nobody reads, close waits; the reader ends it.
void lingers(const char* address, bool blocks, bool by_dup2) {
  const Ends ends = connection(address);
  const linger value{1, 60};
  must(setsockopt(ends.client, SOL_SOCKET, SO_LINGER, &value, sizeof value) == 0, "SO_LINGER");
  if (!blocks) {
    must(fcntl(ends.client, F_SETFL, O_NONBLOCK) == 0, "O_NONBLOCK");
  }
  const size_t sent = fill(ends.client);
  std::atomic<long> thread{0};
  std::atomic<bool> closed{false};
  std::thread closer{[&] {
    thread = ::syscall(SYS_gettid);
    by_dup2 ? (void)dup2(STDIN_FILENO, ends.client) : (void)close(ends.client);
    closed = true;
    // So that it sleeps no more.
    while (closed) std::this_thread::yield();
  }};
  while (!closed && !(thread != 0 && sleeps(thread, true))) std::this_thread::yield();
  std::printf("close %s", closed ? "returned" : "waits");
  const size_t got = read_all(ends.server);
  while (!closed) std::this_thread::yield();
  closed = false;
  closer.join();
  std::printf(", all came: %d\n", got == sent);
}

void lingers_no_longer(const char* address) {
  const Ends ends = connection(address);
  const linger value{1, 1};
  must(setsockopt(ends.client, SOL_SOCKET, SO_LINGER, &value, sizeof value) == 0, "SO_LINGER");
  const size_t sent = fill(ends.client);
  std::printf("close with a limit: %d", close(ends.client));
  std::printf(", all came: %d\n", read_all(ends.server) == sent);
}

}  // namespace

int main(int arguments, char** argument) {
  if (arguments != 2) return 2;
  (void)std::setvbuf(stdout, nullptr, _IOLBF, 0);
  questions(argument[1]);
  least(argument[1]);
  peeks_from(argument[1]);
  for (const bool blocks : {true, false}) lingers(argument[1], blocks, false);
  lingers(argument[1], true, true);
  lingers_no_longer(argument[1]);
  return 0;
}
