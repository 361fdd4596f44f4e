// What connections are asked and told besides bytes. Prints the same by TCP and by SDP.
//
//   sdp_asked ADDRESS

#include <linux/sockios.h>
#include <sys/ioctl.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include "tests/sdp/ends.h"

namespace {

void say(const char* what, ssize_t n) {
  std::printf("%s: %s\n", what, n >= 0 ? std::to_string(n).c_str() : std::strerror(errno));
}

int waiting_bytes(int fd, unsigned long which) {
  int bytes = -1;
  must(ioctl(fd, which, &bytes) == 0, "ioctl");
  return bytes;
}

// Bytes that the peer has not got, and of these the ones that are not on their way.
void queues(const char* address) {
  const Ends ends = connection(address);
  std::vector<char> bytes(1 << 16, 'a');
  pollfd polled{ends.client, POLLOUT, 0};
  std::printf("empty: %d %d\n", waiting_bytes(ends.client, SIOCOUTQ),
              waiting_bytes(ends.client, SIOCOUTQNSD));
  ssize_t sent = 0;
  do {
    const ssize_t n = send(ends.client, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (n > 0) sent += n;
  } while (poll(&polled, 1, 0) == 1);
  const int all = waiting_bytes(ends.client, SIOCOUTQ);
  std::printf("full: %d\n", all > 0 && waiting_bytes(ends.client, SIOCOUTQNSD) <= all);
  while (sent > 0) {
    const ssize_t n = recv(ends.server, bytes.data(), bytes.size(), 0);
    must(n > 0, "recv");
    sent -= n;
  }
  while (waiting_bytes(ends.client, SIOCOUTQ) > 0) std::this_thread::yield();
  std::printf("then: %d\n", waiting_bytes(ends.client, SIOCOUTQNSD));
}

std::string peer_of(int fd) {
  sockaddr_in peer{};
  socklen_t size = sizeof peer;
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) != 0) return std::strerror(errno);
  std::array<char, INET_ADDRSTRLEN> text{};
  return inet_ntop(AF_INET, &peer.sin_addr, text.data(), text.size());
}

void peers(const char* address) {
  const Ends ends = connection(address);
  sockaddr_in name{};
  socklen_t size = sizeof name;
  say("SO_PEERNAME", getsockopt(ends.client, SOL_SOCKET, SO_PEERNAME, &name, &size));
  sockaddr_in peer{};
  (void)getpeername(ends.client, reinterpret_cast<sockaddr*>(&peer), &size);
  std::printf("is the same: %d\n", std::memcmp(&name, &peer, sizeof name) == 0);
  size = sizeof name + 1;
  say("SO_PEERNAME, too long", getsockopt(ends.client, SOL_SOCKET, SO_PEERNAME, &name, &size));
  // Who connects to any address is connected to this host.
  Listener listener = listener_at("0.0.0.0");
  const Ends here = connection_to(listener);
  std::printf("connected to %s\n", peer_of(here.client).c_str());
}

// The name of a connected socket's peer means nothing, but has to be one.
void names(const char* address) {
  const Ends ends = connection(address);
  sockaddr_in any{};
  const auto* name = reinterpret_cast<const sockaddr*>(&any);
  say("sendto", sendto(ends.client, "a", 1, 0, name, sizeof any));
  say("sendto, too long", sendto(ends.client, "a", 1, 0, name, 1000));
  say("sendto, negative", sendto(ends.client, "a", 1, 0, name, static_cast<socklen_t>(-1)));
  const auto* nowhere = reinterpret_cast<const sockaddr*>(1);
  say("sendto, nowhere", sendto(ends.client, "a", 1, 0, nowhere, sizeof any));
  say("sendto, null", sendto(ends.client, "a", 1, 0, nullptr, 1000));
}

void shut_listeners(const char* address) {
  for (const int how : {SHUT_WR, SHUT_RD, SHUT_RDWR}) {
    const Listener listener = listener_at(address);
    say("shutdown", shutdown(listener.fd, how));
    const int client = socket(AF_INET, SOCK_STREAM, 0);
    const auto* at = reinterpret_cast<const sockaddr*>(&listener.at);
    say("connect", connect(client, at, sizeof listener.at));
    (void)close(client);
    (void)close(listener.fd);
  }
}

// A connection that is given up is a reset for the peer, and the socket may connect anew.
void disconnect(const char* address) {
  const Ends ends = connection(address);
  sockaddr none{};
  none.sa_family = AF_UNSPEC;
  say("disconnect", connect(ends.client, &none, sizeof none));
  char byte = 0;
  say("peer", recv(ends.server, &byte, 1, 0));
  std::printf("is connected to: %s\n", peer_of(ends.client).c_str());
  const Listener listener = listener_at(address);
  const auto* at = reinterpret_cast<const sockaddr*>(&listener.at);
  say("connect", connect(ends.client, at, sizeof listener.at));
  const int server = accept(listener.fd, nullptr, nullptr);
  say("send", send(ends.client, "abc", 3, 0));
  std::array<char, 3> came{};
  say("recv", recv(server, came.data(), came.size(), MSG_WAITALL));
}

}  // namespace

int main(int arguments, char** argument) {
  if (arguments != 2) return 2;
  (void)std::setvbuf(stdout, nullptr, _IOLBF, 0);
  queues(argument[1]);
  peers(argument[1]);
  names(argument[1]);
  shut_listeners(argument[1]);
  disconnect(argument[1]);
  return 0;
}
