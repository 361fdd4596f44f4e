// Urgent data for who sleeps, by signals, and through a relay. Prints the same by TCP and by SDP.
//
//   sdp_urgent ADDRESS sleeps|signals|relayed

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <functional>
#include <string_view>

#include "tests/sdp/ends.h"

namespace {

long this_thread() {
  return syscall(SYS_gettid);
}

std::string events_text(unsigned events) {
  std::string text;
  for (const auto& [bit, name] : {std::pair{POLLIN, " IN"}, {POLLPRI, " PRI"}, {POLLERR, " ERR"}}) {
    if ((events & static_cast<unsigned>(bit)) != 0) text += name;
  }
  return text.empty() ? " nothing" : text;
}

std::string received(int fd, size_t most, int flags) {
  std::string bytes(most, '\0');
  const ssize_t n = recv(fd, bytes.data(), most, flags);
  if (n < 0) return "errno " + std::to_string(errno);
  bytes.resize(static_cast<size_t>(n));
  return "'" + bytes + "'";
}

void say(int fd, std::string_view bytes, int flags = 0) {
  must(send(fd, bytes.data(), bytes.size(), flags) == static_cast<ssize_t>(bytes.size()), "send");
}

void urge(int fd, std::string_view bytes) {
  say(fd, bytes, MSG_OOB);
}

// A line. Its parts are calls, which go one behind the other.
class Line {
 public:
  Line() = default;
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;
  ~Line() {
    std::printf("%s\n", text_.c_str());
    (void)std::fflush(stdout);
  }
  Line& operator<<(std::string_view part) {
    text_ += part;
    return *this;
  }
  Line& operator<<(int part) {
    text_ += std::to_string(part);
    return *this;
  }

 private:
  std::string text_;
};

// A thread in a call that sleeps, and what the call came to.
class Sleeper {
 public:
  explicit Sleeper(const std::function<std::string()>& call)
      : thread_([this, call] {
          id_ = this_thread();
          result_ = call();
          over_ = true;
        }) {
    wait_until_sleeps_in_a_call(id_);
  }
  // It has not come to its end by what has just been sent.
  std::string still() {
    wait_until_sleeps_in_a_call(id_);
    return over_ ? "woken" : "asleep";
  }
  std::string result() {
    thread_.join();
    return result_;
  }

 private:
  std::atomic<long> id_{0};
  std::atomic<bool> over_{false};
  std::string result_;
  std::thread thread_;
};

std::string by_poll(int fd, short asked) {
  pollfd one{fd, asked, 0};
  must(poll(&one, 1, -1) == 1, "poll");
  return events_text(static_cast<unsigned>(one.revents));
}

std::string by_ppoll(int fd, short asked) {
  pollfd one{fd, asked, 0};
  must(ppoll(&one, 1, nullptr, nullptr) == 1, "ppoll");
  return events_text(static_cast<unsigned>(one.revents));
}

std::string by_select(int fd, bool to_read) {
  fd_set readable;
  fd_set exceptional;
  FD_ZERO(&readable);
  FD_ZERO(&exceptional);
  FD_SET(fd, &readable);
  FD_SET(fd, &exceptional);
  const int n = select(fd + 1, to_read ? &readable : nullptr, nullptr, &exceptional, nullptr);
  must(n > 0, "select");
  return std::to_string(n) + (to_read && FD_ISSET(fd, &readable) ? " r" : "") +
         (FD_ISSET(fd, &exceptional) ? " x" : "");
}

int epoll_of(int fd, unsigned events) {
  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  epoll_event event{};
  event.events = events;
  event.data.u64 = 77;
  must(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0, "epoll_ctl");
  return epoll;
}

std::string by_epoll(int epoll) {
  epoll_event events[4]{};
  const int n = epoll_wait(epoll, events, 4, -1);
  must(n > 0, "epoll_wait");
  return std::to_string(n) + events_text(events[0].events) + " " +
         std::to_string(events[0].data.u64);
}

// Each way to wait meets an urgent byte, twice, and one with data behind it.
void sleep_in_each_way(const char* address) {
  const std::pair<const char*, std::function<std::string(int, int)>> ways[] = {
      {"poll", [](int fd, int) { return by_poll(fd, POLLIN | POLLPRI); }},
      {"poll for it alone", [](int fd, int) { return by_poll(fd, POLLPRI); }},
      {"ppoll", [](int fd, int) { return by_ppoll(fd, POLLIN | POLLPRI); }},
      {"select", [](int fd, int) { return by_select(fd, true); }},
      {"select for it alone", [](int fd, int) { return by_select(fd, false); }},
      {"epoll", [](int, int epoll) { return by_epoll(epoll); }},
  };
  for (const auto& [name, wait] : ways) {
    const Ends ends = connection(address);
    const int epoll = epoll_of(ends.server, EPOLLIN | EPOLLPRI);
    for (const char* byte : {"1", "2"}) {
      Sleeper sleeper{[&, w = wait] { return w(ends.server, epoll); }};
      urge(ends.client, byte);
      Line{} << name << ": " << sleeper.result() << " " << received(ends.server, 9, MSG_OOB);
    }
    Sleeper sleeper{[&, w = wait] { return w(ends.server, epoll); }};
    urge(ends.client, "ab3");
    // Of the byte and the data in front of it one may be told of first.
    std::string got = sleeper.result();
    if (const size_t data = got.find(" IN"); data != std::string::npos) got.erase(data, 3);
    Line{} << name << ": " << got << " " << received(ends.server, 9, 0) << " "
           << received(ends.server, 9, MSG_OOB);
    (void)close(epoll);
    (void)close(ends.client);
    (void)close(ends.server);
  }
}

void sleep_at_edges(const char* address) {
  const Ends ends = connection(address);
  const int epoll = epoll_of(ends.server, EPOLLIN | EPOLLPRI | EPOLLET);
  for (const char* byte : {"1", "2", "3"}) {
    Sleeper sleeper{[&] { return by_epoll(epoll); }};
    urge(ends.client, byte);
    Line{} << "edges: " << sleeper.result();
  }
  Line{} << "edges: " << received(ends.server, 9, MSG_OOB);
}

void sleep_in_an_epoll_from_before(const char* address) {
  const Listener listener = listener_at(address);
  const int client = socket(AF_INET, SOCK_STREAM, 0);
  const int epoll = epoll_of(client, EPOLLPRI);
  const auto* at = reinterpret_cast<const sockaddr*>(&listener.at);
  // Of a socket that was never connected it shows an end.
  epoll_event event{};
  event.events = EPOLLPRI;
  event.data.u64 = 88;
  must(connect(client, at, sizeof listener.at) == 0, "connect");
  must(epoll_ctl(epoll, EPOLL_CTL_MOD, client, &event) == 0, "epoll_ctl");
  const int server = accept(listener.fd, nullptr, nullptr);
  Sleeper sleeper{[&] { return by_epoll(epoll); }};
  urge(server, "1");
  Line{} << "from before: " << sleeper.result();
  // What is closed is not told of any more.
  (void)close(client);
  epoll_event none{};
  Line{} << "closed: " << epoll_wait(epoll, &none, 1, 0);
}

void sleep_for_data(const char* address) {
  {
    const Ends ends = connection(address);
    Sleeper sleeper{[&] { return by_poll(ends.server, POLLIN); }};
    urge(ends.client, "1");
    const std::string still = sleeper.still();
    say(ends.client, "data");
    Line{} << "poll for data: " << still << sleeper.result() << " " << received(ends.server, 9, 0);
  }
  for (const int flags : {0, static_cast<int>(MSG_PEEK)}) {
    const Ends ends = connection(address);
    Sleeper sleeper{[&] { return received(ends.server, 9, flags); }};
    urge(ends.client, "1");
    const std::string still = sleeper.still();
    say(ends.client, "data");
    Line{} << "recv: " << still << " " << sleeper.result() << " "
           << received(ends.server, 9, MSG_OOB);
  }
  const Ends ends = connection(address);
  Sleeper sleeper{[&] { return received(ends.server, 9, MSG_WAITALL); }};
  say(ends.client, "ab");
  const std::string still = sleeper.still();
  urge(ends.client, "1");
  Line{} << "recv of all: " << still << " " << sleeper.result() << " "
         << received(ends.server, 9, MSG_OOB);
}

int g_fd = -1;
std::atomic<int> g_signals{0};
char g_byte = '-';

void on_urgent(int) {
  ++g_signals;
  if (recv(g_fd, &g_byte, 1, MSG_OOB) != 1) g_byte = '?';
}

void handle(int flags) {
  struct sigaction action {};
  action.sa_handler = on_urgent;
  action.sa_flags = flags;
  must(sigaction(SIGURG, &action, nullptr) == 0, "sigaction");
}

std::string signals_text() {
  const std::string text = std::to_string(g_signals) + " " + g_byte;
  g_signals = 0;
  g_byte = '-';
  return text;
}

void wait_for_signal() {
  while (g_signals == 0) std::this_thread::sleep_for(std::chrono::milliseconds{1});
}

// `call` sleeps in this thread, which has the signals, while another one acts.
std::string meanwhile(const std::function<std::string()>& call, const std::function<void()>& act) {
  const std::atomic<long> id{this_thread()};
  std::thread other{[&] {
    wait_until_sleeps_in_a_call(id);
    act();
  }};
  std::string result = call();
  other.join();
  return result;
}

void get_signals(const char* address) {
  handle(SA_RESTART);
  const Ends ends = connection(address);
  g_fd = ends.server;
  urge(ends.client, "1");
  Line{} << "nobody's:" << by_poll(ends.server, POLLPRI) << " " << signals_text();
  f_owner_ex owner{F_OWNER_TID, static_cast<pid_t>(this_thread())};
  must(fcntl(ends.server, F_SETOWN_EX, &owner) == 0, "F_SETOWN_EX");
  Line{} << "still nobody's: " << signals_text() << " " << received(ends.server, 9, MSG_OOB);
  // No call of the library's meanwhile.
  urge(ends.client, "2");
  wait_for_signal();
  Line{} << "in no call: " << signals_text();
  const auto receive = [&] { return received(ends.server, 9, 0); };
  const std::string restarted = meanwhile(receive, [&] {
    urge(ends.client, "3");
    wait_for_signal();
    say(ends.client, "data");
  });
  Line{} << "restarted: " << restarted << " " << signals_text();
  handle(0);
  const std::string ended = meanwhile(receive, [&] { urge(ends.client, "4"); });
  Line{} << "ended: " << ended << " " << signals_text();
  Line{} << "mark: " << sockatmark(ends.server);
  say(ends.client, "data");
  Line{} << "behind: " << receive();
  const std::string polled = meanwhile(
      [&] {
        pollfd one{ends.server, POLLIN | POLLPRI, 0};
        const int n = poll(&one, 1, -1);
        return n < 0 ? "errno " + std::to_string(errno) : std::to_string(n);
      },
      [&] { urge(ends.client, "5"); });
  Line{} << "polled: " << polled << " " << signals_text();
}

void choose_owner_in_each_way(const char* address) {
  handle(SA_RESTART);
  const int self = getpid();
  const std::pair<const char*, std::function<int(int)>> ways[] = {
      {"F_SETOWN", [self](int fd) { return fcntl(fd, F_SETOWN, self); }},
      {"FIOSETOWN", [self](int fd) { return ioctl(fd, FIOSETOWN, &self); }},
      {"SIOCSPGRP", [self](int fd) { return ioctl(fd, SIOCSPGRP, &self); }},
  };
  for (const auto& [name, own] : ways) {
    for (const bool before : {true, false}) {
      const Listener listener = listener_at(address);
      const int client = socket(AF_INET, SOCK_STREAM, 0);
      if (before) must(own(client) == 0, name);
      const auto* at = reinterpret_cast<const sockaddr*>(&listener.at);
      must(connect(client, at, sizeof listener.at) == 0, "connect");
      if (!before) must(own(client) == 0, name);
      const int server = accept(listener.fd, nullptr, nullptr);
      g_fd = client;
      urge(server, "abc");
      wait_for_signal();
      Line{} << name << (before ? " before: " : " behind: ") << signals_text() << " "
             << (fcntl(client, F_GETOWN, 0) == self ? "own" : "other") << " "
             << received(client, 9, 0);
    }
  }
}

std::string marked(int fd) {
  int at_mark = -1;
  (void)ioctl(fd, SIOCATMARK, &at_mark);
  return std::to_string(sockatmark(fd)) + std::to_string(at_mark);
}

// What comes is there, and an urgent byte is told of.
void wait_for(int fd, short events) {
  pollfd one{fd, events, 0};
  must(poll(&one, 1, -1) == 1, "poll");
}

// Sends in three parts, and receives them.
void through(Line& line, int from, int to) {
  say(from, "ab");
  urge(from, "c1");
  wait_for(to, POLLPRI);
  line << received(to, 9, MSG_WAITALL) << " " << marked(to) << " " << received(to, 9, MSG_OOB)
       << " " << received(to, 9, MSG_OOB);
  say(from, "de");
  line << " " << received(to, 2, MSG_WAITALL) << " " << marked(to);
  urge(from, "2");
  wait_for(to, POLLPRI);
  say(from, "fg");
  line << " " << received(to, 2, MSG_WAITALL) << " " << marked(to);
}

void through_in_line(Line& line, int from, int to) {
  const int on = 1;
  must(setsockopt(to, SOL_SOCKET, SO_OOBINLINE, &on, sizeof on) == 0, "SO_OOBINLINE");
  say(from, "ab");
  urge(from, "c1");
  wait_for(to, POLLPRI);
  say(from, "de");
  line << received(to, 9, MSG_WAITALL) << " " << marked(to) << " " << received(to, 3, MSG_WAITALL)
       << " " << marked(to) << " " << received(to, 9, MSG_OOB | MSG_DONTWAIT);
}

// stdio reads and writes by the kernel's calls.
void give_to_stdio(int fd) {
  must(fdopen(fd, "r+") != nullptr, "fdopen");
}

void relay(const char* address) {
  for (const bool both : {false, true}) {
    const Ends ends = connection(address);
    give_to_stdio(ends.server);
    if (both) give_to_stdio(ends.client);
    for (const bool to_it : {true, false}) {
      Line line;
      line << (both ? "both" : "one") << (to_it ? ", to it: " : ", from it: ");
      through(line, to_it ? ends.client : ends.server, to_it ? ends.server : ends.client);
    }
    for (const bool to_it : {true, false}) {
      Line line;
      line << (both ? "both" : "one") << (to_it ? ", to it, in line: " : ", from it, in line: ");
      through_in_line(line, to_it ? ends.client : ends.server, to_it ? ends.server : ends.client);
    }
  }
}

// A byte that has come, and was not read, goes over to the relay, and so does the owner.
void relay_what_has_come(const char* address) {
  handle(SA_RESTART);
  for (const bool in_line : {false, true}) {
    for (const bool read : {false, true}) {
      const Ends ends = connection(address);
      const int on = in_line ? 1 : 0;
      must(setsockopt(ends.server, SOL_SOCKET, SO_OOBINLINE, &on, sizeof on) == 0, "SO_OOBINLINE");
      say(ends.client, "ab");
      urge(ends.client, "c1");
      say(ends.client, "de");
      wait_for(ends.server, POLLPRI);
      // All of it is there.
      while (received(ends.server, 6, MSG_PEEK | MSG_DONTWAIT) != "'abc'") {
      }
      if (read) Line{} << "read before: " << received(ends.server, 1, MSG_OOB);
      give_to_stdio(ends.server);
      Line{} << "come: " << received(ends.server, 3, MSG_WAITALL) << " "
             << received(ends.server, in_line ? 3 : 2, MSG_WAITALL);
      must(fcntl(ends.server, F_SETOWN, getpid()) == 0, "F_SETOWN");
      g_fd = ends.server;
      urge(ends.client, "2");
      wait_for_signal();
      Line{} << "signals: " << g_signals.load();
      (void)signals_text();
    }
  }
}

void relay_to_a_child(const char* address) {
  const Ends ends = connection(address);
  const pid_t child = fork();
  if (child == 0) {
    urge(ends.server, "ab1");
    wait_for(ends.server, POLLPRI);
    const bool good = received(ends.server, 1, MSG_OOB) == "'2'";
    _exit(good ? 0 : 1);
  }
  wait_for(ends.client, POLLPRI);
  Line{} << "child: " << received(ends.client, 9, MSG_WAITALL) << " "
         << received(ends.client, 9, MSG_OOB);
  urge(ends.client, "2");
  int status = 0;
  must(waitpid(child, &status, 0) == child, "waitpid");
  Line{} << "child's status: " << status;
}

}  // namespace

int main(int arguments, char** argument) {
  if (arguments != 3) return 2;
  const char* address = argument[1];
  const std::string_view what = argument[2];
  if (what == "sleeps") {
    sleep_in_each_way(address);
    sleep_at_edges(address);
    sleep_in_an_epoll_from_before(address);
    sleep_for_data(address);
  } else if (what == "signals") {
    get_signals(address);
    choose_owner_in_each_way(address);
  } else {
    relay(address);
    relay_what_has_come(address);
    relay_to_a_child(address);
  }
  return 0;
}
