// Calls that few programs make. Prints the same by TCP and by SDP.
//
//   sdp_rare ADDRESS

#include <cerrno>
#include <cstring>

#include "tests/sdp/ends.h"

namespace {

// A listener that is closed with all others of its numbers refuses who comes.
void close_listener(const char* address) {
  const Listener listener = listener_at(address);
  const auto fd = static_cast<unsigned>(listener.fd);
  must(close_range(fd, fd, 0) == 0, "close_range");
  const int client = socket(AF_INET, SOCK_STREAM, 0);
  const auto* at = reinterpret_cast<const sockaddr*>(&listener.at);
  const int status = connect(client, at, sizeof listener.at);
  std::printf("close_range: %s\n", status == 0 ? "connected" : std::strerror(errno));
  (void)close(client);
}

}  // namespace

int main(int arguments, char** argument) {
  if (arguments != 2) return 2;
  (void)std::setvbuf(stdout, nullptr, _IOLBF, 0);
  close_listener(argument[1]);
  return 0;
}
