// Both ends of a connection for programs that are run by TCP and by SDP.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

inline void must(bool good, const char* what) {
  if (good) return;
  std::perror(what);
  std::exit(1);
}

struct Ends {
  int client = -1;
  int server = -1;
};

inline Ends connection(const char* address) {
  sockaddr_in at{};
  at.sin_family = AF_INET;
  (void)inet_pton(AF_INET, address, &at.sin_addr);
  socklen_t size = sizeof at;
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  must(bind(listener, reinterpret_cast<sockaddr*>(&at), size) == 0 && listen(listener, 5) == 0,
       "listen");
  (void)getsockname(listener, reinterpret_cast<sockaddr*>(&at), &size);
  // SDP begins with the first wait.
  pollfd waited{listener, POLLIN, 0};
  (void)poll(&waited, 1, 0);
  Ends ends;
  ends.client = socket(AF_INET, SOCK_STREAM, 0);
  must(connect(ends.client, reinterpret_cast<sockaddr*>(&at), size) == 0, "connect");
  ends.server = accept(listener, nullptr, nullptr);
  must(ends.server >= 0, "accept");
  (void)close(listener);
  return ends;
}
