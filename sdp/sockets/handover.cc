#include "sdp/sockets/handover.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <string>
#include <utility>

#include "sdp/sockets/passed.h"
#include "sdp/sockets/real.h"
#include "sdp/sockets/shown_name.h"

namespace weft::sdp {
namespace {

constexpr timeval kMostWait{1, 0};
constexpr int kBacklog = 4;

// A call once more where a handler of the program's ended it, for as long as the whole may take. A
// time limit makes it end with any handler, also with SA_RESTART (signal(7)).
template <class Call>
auto again(Call call) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds{kMostWait.tv_sec};
  auto result = call();
  while (result < 0 && errno == EINTR && std::chrono::steady_clock::now() < end) result = call();
  return result;
}

struct HandoverName {
  sockaddr_un address{};
  socklen_t size = 0;

  // An abstract name: only processes of the same network namespace meet there.
  explicit HandoverName(const Address& wake_up) {
    const std::string text = "weft-sdp wake-up " + to_string(wake_up);
    address.sun_family = AF_UNIX;
    const size_t length = std::min(text.size(), sizeof address.sun_path - 1);
    std::memcpy(address.sun_path + 1, text.data(), length);
    size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
  }
  const sockaddr* any() const { return reinterpret_cast<const sockaddr*>(&address); }
};

// Whoever may change what this process does anyway.
bool is_own_user(int fd) {
  ucred other{};
  socklen_t size = sizeof other;
  return real().getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &other, &size) == 0 &&
         (other.uid == ::geteuid() || other.uid == 0);
}

// A wake-up connection comes from the host that it goes to.
std::optional<Address> peer_on_this_host(int fd) {
  Address own{};
  Address peer{};
  socklen_t size = sizeof own;
  socklen_t peer_size = sizeof peer;
  if (real().getsockname(fd, &own.any, &size) != 0) return std::nullopt;
  if (real().getpeername(fd, &peer.any, &peer_size) != 0) return std::nullopt;
  if (shown_name(own).address != shown_name(peer).address) return std::nullopt;
  return peer;
}

}  // namespace

Handover::Handover(Loop& loop, const Address& wake_up, Asked asked)
    : loop_(loop), asked_(std::move(asked)) {
  listener_ =
      out_of_the_way(File{::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)});
  const HandoverName name{wake_up};
  // Without a socket to ask at, another process keeps the wake-up connection, as one of TCP.
  if (!listener_ || ::bind(listener_.get(), name.any(), name.size) != 0 ||
      real().listen(listener_.get(), kBacklog) != 0 ||
      !loop_.watch(listener_.get(), EPOLLIN, [this](uint32_t) { on_asker(); })) {
    listener_.reset();
  }
}

Handover::~Handover() {
  if (listener_) loop_.forget(listener_.get());
}

void Handover::on_asker() {
  File asker{real().accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)};
  if (asker && is_own_user(asker.get())) asked_(std::move(asker));
}

void Handover::answer(const File& asker, const Address& peer, const File& connection) {
  (void)pass(asker.get(), {reinterpret_cast<const std::byte*>(&peer), sizeof peer},
             {connection.get(), -1});
}

std::optional<Handover::Answer> Handover::ask(int fd) {
  const auto wake_up = peer_on_this_host(fd);
  if (!wake_up) return std::nullopt;
  const File handover{::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)};
  if (!handover) return std::nullopt;
  (void)real().setsockopt(handover.get(), SOL_SOCKET, SO_RCVTIMEO, &kMostWait, sizeof kMostWait);
  (void)real().setsockopt(handover.get(), SOL_SOCKET, SO_SNDTIMEO, &kMostWait, sizeof kMostWait);
  const HandoverName name{*wake_up};
  if (again([&] { return real().connect(handover.get(), name.any(), name.size); }) != 0) {
    return std::nullopt;
  }
  if (!is_own_user(handover.get())) return std::nullopt;
  Answer answer;
  std::array<File, kMostPassed> files;
  const ssize_t got = again([&] {
    return take_passed(handover.get(),
                       {reinterpret_cast<std::byte*>(&answer.peer), sizeof answer.peer}, files);
  });
  if (got != sizeof answer.peer) return std::nullopt;
  answer.connection = std::move(files[0]);
  return answer;
}

}  // namespace weft::sdp
