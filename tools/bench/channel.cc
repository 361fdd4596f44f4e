#include "bench/channel.h"

#include <sys/socket.h>

#include <array>
#include <string>

#include "kit/failure.h"
#include "kit/json_text.h"

namespace weft::bench {
namespace {

// One attempt, begun anew when a signal interrupts it.
template <class Call>
ssize_t persistent(Call&& call) {
  for (;;) {
    const ssize_t n = call();
    if (n >= 0 || errno != EINTR) return n;
  }
}

}  // namespace

void Channel::send(const nlohmann::json& document) const {
  const std::string text = kit::text_of(document);
  if (persistent([&] { return ::send(fd(), text.data(), text.size(), MSG_NOSIGNAL); }) < 0) {
    throw kit::system_failure("the other process of the benchmark does not listen");
  }
}

nlohmann::json Channel::receive() const {
  // MSG_TRUNC: the length of the document, not of what was read of it.
  const ssize_t length = persistent([&] { return ::recv(fd(), nullptr, 0, MSG_PEEK | MSG_TRUNC); });
  if (length < 0) throw kit::system_failure("cannot hear the other process of the benchmark");
  if (length == 0) throw kit::Failure{"the other process of the benchmark has ended"};
  std::string text(static_cast<size_t>(length), '\0');
  if (persistent([&] { return ::recv(fd(), text.data(), text.size(), 0); }) != length) {
    throw kit::system_failure("cannot hear the other process of the benchmark");
  }
  return nlohmann::json::parse(text);
}

std::pair<Channel, Channel> make_channel() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    throw kit::system_failure("socketpair");
  }
  return {Channel{port::Fd{ends[0]}}, Channel{port::Fd{ends[1]}}};
}

}  // namespace weft::bench
