#include "sdp/sockets/decide.h"

#include <errno.h>
#include <netinet/in.h>

#include "sdp/sockets/library.h"
#include "sdp/sockets/real.h"

namespace weft::sdp {
namespace {

int option(int fd, int name) {
  int value = -1;
  socklen_t size = sizeof value;
  return real().getsockopt(fd, SOL_SOCKET, name, &value, &size) == 0 ? value : -1;
}

bool is_tcp(int fd) {
  return option(fd, SO_TYPE) == SOCK_STREAM && option(fd, SO_PROTOCOL) == IPPROTO_TCP;
}

Use decide(SocketRole role, const sockaddr* address, socklen_t size) {
  const auto endpoint = Endpoint::from(address, size);
  if (!endpoint) return Use::tcp;
  return Library::rules()
      .configuration.rules.decide(role, program_invocation_short_name, *endpoint)
      .use;
}

}  // namespace

Use use_to_connect(int fd, const sockaddr* to, socklen_t size) {
  if (to == nullptr || (to->sa_family != AF_INET && to->sa_family != AF_INET6)) return Use::tcp;
  if (!is_tcp(fd)) return Use::tcp;
  // Connected already, or trying to be: the kernel has the answer.
  sockaddr_storage peer{};
  socklen_t peer_size = sizeof peer;
  auto* p = reinterpret_cast<sockaddr*>(&peer);
  if (real().getpeername(fd, p, &peer_size) == 0) return Use::tcp;
  return decide(SocketRole::client, to, size);
}

bool may_listen(int fd) {
  sockaddr_storage own{};
  socklen_t size = sizeof own;
  auto* p = reinterpret_cast<sockaddr*>(&own);
  if (!is_tcp(fd) || real().getsockname(fd, p, &size) != 0) return false;
  return decide(SocketRole::server, p, size) != Use::tcp;
}

}  // namespace weft::sdp
