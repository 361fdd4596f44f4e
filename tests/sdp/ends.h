// Both ends of a connection for programs that are run by TCP and by SDP.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

inline void must(bool good, const char* what) {
  if (good) return;
  std::perror(what);
  std::exit(1);
}

// By SCM_RIGHTS, beside a byte.
inline void pass(int fd, int over) {
  char byte = 0;
  iovec data{&byte, 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof fd)> control{};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* const rights = CMSG_FIRSTHDR(&message);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(sizeof fd);
  std::memcpy(CMSG_DATA(rights), &fd, sizeof fd);
  must(sendmsg(over, &message, 0) == 1, "sendmsg");
}

struct Ends {
  int client = -1;
  int server = -1;
};

struct Listener {
  int fd = -1;
  sockaddr_in at{};
};

// SDP begins with the first wait.
enum class Begins : uint8_t { now, later };

inline Listener listener_at(const char* address, Begins begins = Begins::now) {
  sockaddr_in at{};
  at.sin_family = AF_INET;
  (void)inet_pton(AF_INET, address, &at.sin_addr);
  socklen_t size = sizeof at;
  const int listener =
      socket(AF_INET, SOCK_STREAM | (begins == Begins::later ? SOCK_NONBLOCK : 0), 0);
  must(bind(listener, reinterpret_cast<sockaddr*>(&at), size) == 0 && listen(listener, 5) == 0,
       "listen");
  (void)getsockname(listener, reinterpret_cast<sockaddr*>(&at), &size);
  pollfd waited{listener, POLLIN, 0};
  if (begins == Begins::now) (void)poll(&waited, 1, 0);
  return {listener, at};
}

// The listener goes on.
inline Ends next_connection_to(const Listener& listener) {
  Ends ends;
  ends.client = socket(AF_INET, SOCK_STREAM, 0);
  const auto* at = reinterpret_cast<const sockaddr*>(&listener.at);
  must(connect(ends.client, at, sizeof listener.at) == 0, "connect");
  ends.server = accept(listener.fd, nullptr, nullptr);
  must(ends.server >= 0, "accept");
  return ends;
}

inline Ends connection_to(const Listener& listener) {
  const Ends ends = next_connection_to(listener);
  (void)close(listener.fd);
  return ends;
}

inline Ends connection(const char* address) {
  return connection_to(listener_at(address));
}

// Whether a thread of this process sleeps in a call, or also in a wait of its own program's or the
// library's. The library looks for a while before it sleeps, and asks this and that with calls that
// do not.
inline bool sleeps(long thread, bool in_any_wait) {
  const std::string folder = "/proc/self/task/" + std::to_string(thread);
  std::string state;
  std::getline(std::ifstream{folder + "/stat"}, state);
  const size_t name_end = state.rfind(')');
  if (name_end == std::string::npos || state.compare(name_end, 4, ") S ") != 0) return false;
  std::string call;
  std::ifstream{folder + "/syscall"} >> call;
  constexpr int kFutex = 202;
  return !call.empty() && call != "running" && (in_any_wait || call != std::to_string(kFutex));
}

// It may sleep for a moment before.
inline void wait_until_sleeps(const std::atomic<long>& thread, bool in_any_wait) {
  constexpr int kTimes = 5;
  for (int times = 0; times < kTimes;) {
    times = thread != 0 && sleeps(thread, in_any_wait) ? times + 1 : 0;
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
}

inline void wait_until_sleeps_in_a_call(const std::atomic<long>& thread) {
  wait_until_sleeps(thread, false);
}

// The library's own thread, if there is one.
inline long thread_of_library() {
  for (const auto& task : std::filesystem::directory_iterator{"/proc/self/task"}) {
    std::string name;
    std::getline(std::ifstream{task.path() / "comm"}, name);
    if (name == "weft-sdp") return std::stol(task.path().filename().string());
  }
  return 0;
}
