#include "sdp/sockets/decide.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <string>

#include "sdp/sockets/library.h"
#include "sdp/sockets/process_rules.h"
#include "sdp/sockets/real.h"

namespace weft::sdp {
namespace {

int option(int fd, int name) {
  int value = -1;
  socklen_t size = sizeof value;
  return real().getsockopt(fd, SOL_SOCKET, name, &value, &size) == 0 ? value : -1;
}

// What getpeername(2) does not tell: one that tries to connect has no peer yet.
int tcp_state(int fd) {
  tcp_info info{};
  socklen_t size = sizeof info.tcpi_state;
  return real().getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 ? info.tcpi_state : 0;
}

bool is_tcp(int fd) {
  return option(fd, SO_TYPE) == SOCK_STREAM && option(fd, SO_PROTOCOL) == IPPROTO_TCP;
}

const char* name(SocketRole role) {
  return role == SocketRole::server ? "listen at " : "connect to ";
}

// Says nothing, and takes no memory, where nobody wants to hear it.
void tell(SocketRole role, const Endpoint& endpoint, const Decision& decision) {
  const SentenceLog& log = process_log();
  const LogLevel level = decision.line == 0 ? LogLevel::mismatch : LogLevel::match;
  if (!log.wants(level)) return;
  const std::string rule = decision.line == 0
                               ? "no rule fits"
                               : "the rule in line " + std::to_string(decision.line) + " fits";
  log.write(level, name(role) + endpoint.to_string() + ": " + rule + ", " + name(decision.use));
}

std::optional<Use> decide(SocketRole role, const sockaddr* address, socklen_t size) {
  const auto endpoint = Endpoint::from(address, size);
  if (!endpoint) return std::nullopt;
  const Decision decision =
      process_rules().configuration.rules.decide(role, program_invocation_short_name, *endpoint);
  tell(role, *endpoint, decision);
  return decision.use;
}

}  // namespace

std::optional<Use> use_to_connect(int fd, const sockaddr* to, socklen_t size) {
  if (to == nullptr || (to->sa_family != AF_INET && to->sa_family != AF_INET6)) return std::nullopt;
  if (!is_tcp(fd)) return std::nullopt;
  // Connected already, or trying to be: the kernel has the answer.
  if (tcp_state(fd) != TCP_CLOSE) return std::nullopt;
  return decide(SocketRole::client, to, size);
}

std::optional<Use> use_to_listen(int fd) {
  sockaddr_storage own{};
  socklen_t size = sizeof own;
  auto* p = reinterpret_cast<sockaddr*>(&own);
  if (!is_tcp(fd) || real().getsockname(fd, p, &size) != 0) return std::nullopt;
  return decide(SocketRole::server, p, size);
}

}  // namespace weft::sdp
