#include "weft/doctor_peer.h"

#include <fmt/format.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include "weft/socket.h"

namespace weft::tools {
namespace {

constexpr uint16_t kAnyPort = 9;  // discard; a UDP connect(2) sends nothing, so any number does

struct FreeAddresses {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
  void operator()(ifaddrs* list) const { freeifaddrs(list); }
};
using AddressList = std::unique_ptr<addrinfo, FreeAddresses>;

std::string text_of(const sockaddr* address, socklen_t length) {
  std::array<char, NI_MAXHOST> text{};
  if (getnameinfo(address, length, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) != 0)
    return "?";
  return text.data();
}

// The interface that bears the address whose text is `address`.
std::string interface_of(const std::string& address) {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return "?";
  const std::unique_ptr<ifaddrs, FreeAddresses> owner(list);
  for (const ifaddrs* i = list; i != nullptr; i = i->ifa_next) {
    if (i->ifa_addr == nullptr) continue;
    const int family = i->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    const socklen_t length = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    if (text_of(i->ifa_addr, length) == address) return i->ifa_name;
  }
  return "?";
}

int path_mtu(const Socket& socket, int family) {
  int mtu = 0;
  socklen_t length = sizeof mtu;
  const int level = family == AF_INET ? IPPROTO_IP : IPPROTO_IPV6;
  const int name = family == AF_INET ? IP_MTU : IPV6_MTU;
  return getsockopt(socket.get(), level, name, &mtu, &length) == 0 ? mtu : 0;
}

Finding check_route(const addrinfo& target) {
  const std::string peer = text_of(target.ai_addr, target.ai_addrlen);
  const Socket socket(target.ai_family, SOCK_DGRAM);
  sockaddr_storage own{};
  socklen_t length = sizeof own;
  auto* generic = reinterpret_cast<sockaddr*>(&own);
  if (socket.get() < 0 || connect(socket.get(), target.ai_addr, target.ai_addrlen) != 0 ||
      getsockname(socket.get(), generic, &length) != 0) {
    return {Severity::problem, "route", fmt::format("no way to {}: {}", peer, std::strerror(errno)),
            fmt::format("see 'ip route get {}'; bring up an interface, or add a route", peer)};
  }
  const std::string source = text_of(generic, length);
  if (source == peer) {
    return {Severity::ok, "route", fmt::format("{} is this machine", peer), ""};
  }
  return {Severity::ok, "route",
          fmt::format("to {} from {} ({}), path MTU {}; ping is not needed", peer, source,
                      interface_of(source), path_mtu(socket, target.ai_family)),
          ""};
}

// 0, or the errno of a connection attempt.
int try_connect(const addrinfo& target, std::chrono::milliseconds patience) {
  const Socket socket(target.ai_family, SOCK_STREAM | SOCK_NONBLOCK);
  if (socket.get() < 0) return errno;
  if (connect(socket.get(), target.ai_addr, target.ai_addrlen) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  pollfd watched{socket.get(), POLLOUT, 0};
  const auto deadline = std::chrono::steady_clock::now() + patience;
  for (;;) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now())
            .count();
    const int ready = left > 0 ? poll(&watched, 1, static_cast<int>(left)) : 0;
    if (ready == 0) return ETIMEDOUT;
    if (ready > 0) break;
    if (errno != EINTR) return errno;
  }
  int error = 0;
  socklen_t length = sizeof error;
  if (getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &length) != 0) return errno;
  return error;
}

Finding check_connection(const addrinfo& target, uint16_t port,
                         std::chrono::milliseconds patience) {
  const std::string peer =
      fmt::format("{} port {}", text_of(target.ai_addr, target.ai_addrlen), port);
  const int error = try_connect(target, patience);
  switch (error) {
    case 0:
      return {Severity::ok, "connection", fmt::format("TCP to {} is accepted", peer), ""};
    case ECONNREFUSED:
      return {
          Severity::problem, "connection",
          fmt::format("TCP to {} is refused: the host answers, and nothing listens there", peer),
          "start the program there first; check that it listens on this address and not on "
          "127.0.0.1"};
    case ETIMEDOUT:
      return {Severity::problem, "connection",
              fmt::format("TCP to {} gets no answer in {} ms", peer, patience.count()),
              "a firewall on the way drops it, or the host is down; weft needs TCP and UDP between "
              "the hosts, "
              "on the ports of ip_local_port_range and on those that programs listen on"};
    case EACCES:
    case EPERM:
      return {Severity::problem, "connection",
              fmt::format("TCP to {} is forbidden on this machine: {}", peer, std::strerror(error)),
              "see 'nft list ruleset' here; let outgoing TCP pass"};
    default:
      return {Severity::problem, "connection",
              fmt::format("TCP to {}: {}", peer, std::strerror(error)),
              "see 'ip route get' and the firewalls on the way"};
  }
}

}  // namespace

std::vector<Finding> check_peer(const PeerRequest& request) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const std::string service = std::to_string(request.port.value_or(kAnyPort));
  const int error = getaddrinfo(request.host.c_str(), service.c_str(), &hints, &found);
  const AddressList list(found);
  if (error != 0) {
    return {{Severity::problem, "name", fmt::format("{}: {}", request.host, gai_strerror(error)),
             "give an address, or add the name to /etc/hosts or to the name server"}};
  }
  std::vector<Finding> findings;
  bool reachable = false;
  for (const addrinfo* target = found; target != nullptr; target = target->ai_next) {
    findings.push_back(check_route(*target));
    if (findings.back().severity == Severity::ok && request.port) {
      findings.push_back(check_connection(*target, *request.port, request.patience));
    }
    reachable = reachable || findings.back().severity == Severity::ok;
  }
  // A name with several addresses, such as one of each family: one that works is enough.
  for (Finding& finding : findings) {
    if (reachable && finding.severity == Severity::problem) finding.severity = Severity::note;
  }
  return findings;
}

}  // namespace weft::tools
