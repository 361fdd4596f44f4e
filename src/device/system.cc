#include "device/system.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netpacket/packet.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <memory>
#include <optional>
#include <sstream>

#include "base/contents_of.h"
#include "base/number_in.h"

namespace weft::device {
namespace {

std::vector<std::string> words_of(std::string_view line) {
  std::istringstream in{std::string(line)};
  std::vector<std::string> words;
  for (std::string w; in >> w;) words.push_back(std::move(w));
  return words;
}

// The columns of one of the two files that matter here.
struct RouteColumns {
  size_t interface, destination, prefix, flags, metric, count;
  int metric_base;
};

bool all_zero(std::string_view text) {
  return text.find_first_not_of('0') == std::string_view::npos;
}

RouteMetrics default_routes(std::string_view text, const RouteColumns& at) {
  constexpr uint32_t kUp = 0x1, kReject = 0x200;  // RTF_UP, RTF_REJECT of route(8)
  RouteMetrics best;
  std::istringstream in{std::string(text)};
  for (std::string line; std::getline(in, line);) {
    const std::vector<std::string> words = words_of(line);
    if (words.size() < at.count) continue;
    const auto flags = number_in<uint32_t>(words[at.flags], 16);
    const auto metric = number_in<uint32_t>(words[at.metric], at.metric_base);
    if (!flags || !metric || (*flags & kUp) == 0 || (*flags & kReject) != 0) continue;
    if (!all_zero(words[at.destination]) || !all_zero(words[at.prefix])) continue;
    const auto [line_of, fresh] = best.try_emplace(words[at.interface], *metric);
    if (!fresh) line_of->second = std::min(line_of->second, *metric);
  }
  return best;
}

// What netlink tells. nullopt with errno where a process may not ask it: a service with
// RestrictAddressFamilies= (systemd.exec(5)), or in a sandbox.
using Interfaces = std::unique_ptr<ifaddrs, decltype(&freeifaddrs)>;
std::optional<Interfaces> interfaces() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return std::nullopt;
  return Interfaces{list, &freeifaddrs};
}

// Not by socket(2): a library that takes that over for the program (librspreload) would ask for the
// device again.
int open_socket(int family) {
  return static_cast<int>(::syscall(SYS_socket, family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
}

// Asks about interfaces by ioctl, netdevice(7). sysfs would need no socket, but it shows the
// network namespace that mounted it, which is not always the process's own.
class InterfaceQuery {
 public:
  InterfaceQuery() : fd_(open_socket(AF_INET)) {
    if (fd_ < 0) fd_ = open_socket(AF_INET6);
  }
  InterfaceQuery(const InterfaceQuery&) = delete;
  InterfaceQuery& operator=(const InterfaceQuery&) = delete;
  ~InterfaceQuery() {
    if (fd_ >= 0) ::close(fd_);
  }
  std::optional<uint32_t> mtu(const std::string& interface) const {
    const auto answer = ask(interface, SIOCGIFMTU);
    if (!answer || answer->ifr_mtu <= 0) return std::nullopt;
    return static_cast<uint32_t>(answer->ifr_mtu);
  }
  // Of net/if.h.
  uint32_t flags(const std::string& interface) const {
    const auto answer = ask(interface, SIOCGIFFLAGS);
    return answer ? static_cast<uint16_t>(answer->ifr_flags) : 0;
  }
  std::vector<uint8_t> mac(const std::string& interface) const {
    const auto answer = ask(interface, SIOCGIFHWADDR);
    if (!answer) return {};
    constexpr size_t kEthernet = 6;
    const auto* bytes = reinterpret_cast<const uint8_t*>(answer->ifr_hwaddr.sa_data);
    return {bytes, bytes + kEthernet};
  }
  // Addresses of IPv4 with the names of their interfaces, and nothing else of them.
  std::vector<LocalAddress> ipv4_addresses() const {
    std::vector<ifreq> room(64);
    ifconf asked{};
    for (;;) {
      asked.ifc_len = static_cast<int>(room.size() * sizeof(ifreq));
      asked.ifc_req = room.data();
      if (fd_ < 0 || ::ioctl(fd_, SIOCGIFCONF, &asked) != 0) return {};
      // Full: there may be more.
      if (static_cast<size_t>(asked.ifc_len) < room.size() * sizeof(ifreq)) break;
      room.resize(2 * room.size());
    }
    room.resize(static_cast<size_t>(asked.ifc_len) / sizeof(ifreq));
    std::vector<LocalAddress> found;
    for (const ifreq& r : room) {
      if (r.ifr_addr.sa_family != AF_INET) continue;
      sockaddr_in in{};
      std::memcpy(&in, &r.ifr_addr, sizeof in);
      LocalAddress a;
      a.gid = Gid::from_ipv4(ntohl(in.sin_addr.s_addr));
      // What stands behind a colon is a label of the address.
      const std::string_view name{r.ifr_name, strnlen(r.ifr_name, IFNAMSIZ)};
      a.interface = name.substr(0, name.find(':'));
      found.push_back(std::move(a));
    }
    return found;
  }

 private:
  std::optional<ifreq> ask(const std::string& interface, unsigned long what) const {
    ifreq request{};
    std::strncpy(request.ifr_name, interface.c_str(), IFNAMSIZ - 1);
    if (fd_ < 0 || ::ioctl(fd_, what, &request) != 0) return std::nullopt;
    return request;
  }
  int fd_;
};

std::vector<LocalAddress> of_netlink(const ifaddrs* list) {
  std::vector<LocalAddress> found;
  for (const ifaddrs* i = list; i != nullptr; i = i->ifa_next) {
    if (i->ifa_addr == nullptr) continue;
    LocalAddress a;
    if (i->ifa_addr->sa_family == AF_INET) {
      sockaddr_in in{};
      std::memcpy(&in, i->ifa_addr, sizeof in);
      a.gid = Gid::from_ipv4(ntohl(in.sin_addr.s_addr));
    } else if (i->ifa_addr->sa_family == AF_INET6) {
      sockaddr_in6 in6{};
      std::memcpy(&in6, i->ifa_addr, sizeof in6);
      std::memcpy(a.gid.raw.data(), &in6.sin6_addr, a.gid.raw.size());
      a.scope_id = in6.sin6_scope_id;
    } else {
      continue;
    }
    a.interface = i->ifa_name;
    a.up = (i->ifa_flags & IFF_UP) != 0;
    a.running = (i->ifa_flags & IFF_RUNNING) != 0;
    found.push_back(std::move(a));
  }
  return found;
}

std::vector<LocalAddress> without_netlink(const InterfaceQuery& query) {
  std::vector<LocalAddress> found = query.ipv4_addresses();
  for (LocalAddress& a : ipv6_addresses(contents_of("/proc/net/if_inet6"))) {
    found.push_back(std::move(a));
  }
  for (LocalAddress& a : found) {
    const uint32_t flags = query.flags(a.interface);
    a.up = (flags & IFF_UP) != 0;
    a.running = (flags & IFF_RUNNING) != 0;
  }
  return found;
}

// The names of /proc/net/dev, each before a colon.
std::vector<std::string> interface_names() {
  std::vector<std::string> names;
  std::istringstream text{contents_of("/proc/net/dev")};
  for (std::string line; std::getline(text, line);) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const size_t first = line.find_first_not_of(' ');
    names.push_back(line.substr(first, colon - first));
  }
  return names;
}

bool any_set(const std::vector<uint8_t>& mac) {
  return std::any_of(mac.begin(), mac.end(), [](uint8_t byte) { return byte != 0; });
}

// FNV-1a with a final mix, so that ids that differ in one digit differ everywhere.
uint64_t hash_of(std::string_view kind, std::span<const uint8_t> bytes) {
  uint64_t h = 0xcbf29ce484222325U;
  auto add = [&h](uint8_t byte) { h = (h ^ byte) * 0x100000001b3U; };
  for (const char c : kind) add(static_cast<uint8_t>(c));
  for (const uint8_t byte : bytes) add(byte);
  h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9U;
  h = (h ^ (h >> 27)) * 0x94d049bb133111ebU;
  return h ^ (h >> 31);
}

std::span<const uint8_t> bytes_of(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

// machine-id(5): 32 hexadecimal digits. "uninitialized" stands there while a host boots for the
// first time.
bool valid_machine_id(std::string_view id) {
  return id.size() == 32 && !all_zero(id) &&
         std::all_of(id.begin(), id.end(), [](unsigned char c) { return std::isxdigit(c) != 0; });
}

}  // namespace

RouteMetrics default_routes_ipv4(std::string_view proc_net_route) {
  return default_routes(proc_net_route, {.interface = 0,
                                         .destination = 1,
                                         .prefix = 7,
                                         .flags = 3,
                                         .metric = 6,
                                         .count = 8,
                                         .metric_base = 10});
}

RouteMetrics default_routes_ipv6(std::string_view proc_net_ipv6_route) {
  return default_routes(proc_net_ipv6_route, {.interface = 9,
                                              .destination = 0,
                                              .prefix = 1,
                                              .flags = 8,
                                              .metric = 5,
                                              .count = 10,
                                              .metric_base = 16});
}

std::vector<LocalAddress> ipv6_addresses(std::string_view proc_net_if_inet6) {
  constexpr size_t kColumns = 6;  // address, index, prefix, scope, flags, interface
  std::vector<LocalAddress> found;
  std::istringstream in{std::string(proc_net_if_inet6)};
  for (std::string line; std::getline(in, line);) {
    const std::vector<std::string> words = words_of(line);
    if (words.size() < kColumns || words[0].size() != 2 * Gid{}.raw.size()) continue;
    LocalAddress a;
    bool good = true;
    for (size_t i = 0; i < a.gid.raw.size(); ++i) {
      const auto byte = number_in<uint32_t>(std::string_view{words[0]}.substr(2 * i, 2), 16);
      good = good && byte.has_value();
      a.gid.raw[i] = static_cast<uint8_t>(byte.value_or(0));
    }
    const auto index = number_in<uint32_t>(words[1], 16);
    if (!good || !index) continue;
    if (a.gid.is_link_local()) a.scope_id = *index;
    a.interface = words[5];
    found.push_back(std::move(a));
  }
  return found;
}

std::vector<LocalAddress> local_addresses(std::string* complaint) {
  const InterfaceQuery query;
  const auto list = interfaces();
  const int why = list ? 0 : errno;
  std::vector<LocalAddress> found = list ? of_netlink(list->get()) : without_netlink(query);
  if (found.empty() && !list && complaint != nullptr) {
    *complaint = "no address of this host can be found out: netlink is refused (" +
                 std::string{std::strerror(why)} +
                 "), and ioctl and /proc/net/if_inet6 tell of none; let the program have sockets "
                 "of AF_NETLINK (systemd: RestrictAddressFamilies=... AF_NETLINK)";
  }
  const RouteMetrics ipv4_routes = default_routes_ipv4(contents_of("/proc/net/route"));
  const RouteMetrics ipv6_routes = default_routes_ipv6(contents_of("/proc/net/ipv6_route"));
  for (LocalAddress& a : found) {
    a.ifindex = if_nametoindex(a.interface.c_str());
    a.link_mtu = query.mtu(a.interface).value_or(a.link_mtu);
    const RouteMetrics& routes = a.gid.is_ipv4() ? ipv4_routes : ipv6_routes;
    if (const auto route = routes.find(a.interface); route != routes.end()) {
      a.default_route_metric = route->second;
    }
  }
  return found;
}

HostFacts host_facts() {
  HostFacts facts;
  const std::vector<std::string> words = words_of(contents_of("/etc/machine-id"));
  if (!words.empty()) facts.machine_id = words.front();
  if (const auto list = interfaces()) {
    for (const ifaddrs* i = list->get(); i != nullptr && facts.mac.empty(); i = i->ifa_next) {
      if (i->ifa_addr == nullptr || i->ifa_addr->sa_family != AF_PACKET) continue;
      sockaddr_ll link{};
      std::memcpy(&link, i->ifa_addr, sizeof link);
      std::vector<uint8_t> mac(
          link.sll_addr, link.sll_addr + std::min<size_t>(link.sll_halen, sizeof link.sll_addr));
      if (any_set(mac)) facts.mac = std::move(mac);
    }
  } else {
    const InterfaceQuery query;
    for (const std::string& name : interface_names()) {
      if (facts.mac.empty() && any_set(query.mac(name))) facts.mac = query.mac(name);
    }
  }
  char name[256] = "";
  if (gethostname(name, sizeof name - 1) == 0) facts.name = name;
  return facts;
}

uint64_t make_guid(const HostFacts& facts) {
  uint64_t guid = 0;
  if (valid_machine_id(facts.machine_id)) {
    guid = hash_of("weft machine-id ", bytes_of(facts.machine_id));
  } else if (!facts.mac.empty()) {
    guid = hash_of("weft mac ", facts.mac);
  } else {
    guid = hash_of("weft hostname ", bytes_of(facts.name));
  }
  // EUI-64, first byte: bit 1 says locally administered, bit 0 that it names a group.
  constexpr uint64_t kLocal = uint64_t{2} << 56, kGroup = uint64_t{1} << 56;
  return (guid | kLocal) & ~kGroup;
}

}  // namespace weft::device
