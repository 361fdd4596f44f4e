// Calls as only programs in C make them. Prints the same by TCP and by SDP.
//
//   sdp_c_calls ADDRESS

#include <sys/sendfile.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

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

}  // namespace

int main(int arguments, char** argument) {
  if (arguments != 2) return 2;
  (void)std::setvbuf(stdout, nullptr, _IOLBF, 0);
  accept_names(argument[1]);
  send_files(argument[1]);
  return 0;
}
