// Calls as only programs in C make them. Prints the same by TCP and by SDP.
//
//   sdp_c_calls ADDRESS

#include <algorithm>
#include <array>

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

}  // namespace

int main(int arguments, char** argument) {
  if (arguments != 2) return 2;
  (void)std::setvbuf(stdout, nullptr, _IOLBF, 0);
  accept_names(argument[1]);
  return 0;
}
