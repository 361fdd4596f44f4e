#include "doctor/route.h"

#include <fmt/format.h>
#include <netdb.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "config/options.h"
#include "device/device.h"
#include "device/system.h"
#include "doctor/client.h"
#include "port/route.h"

namespace weft::doctor {
namespace {

// With the scope of a link-local address.
std::string text_of(const port::Address& a) {
  std::array<char, NI_MAXHOST> text{};
  const int error =
      getnameinfo(a.get(), a.length, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST);
  return error == 0 ? text.data() : a.gid().to_string();
}

}  // namespace

std::vector<port::Address> addresses_of(const std::string& host, uint16_t port,
                                        std::string& error) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int e = getaddrinfo(host.c_str(), nullptr, &hints, &found); e != 0) {
    error = gai_strerror(e);
    return {};
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, &freeaddrinfo);
  std::vector<port::Address> addresses;
  for (const addrinfo* i = found; i != nullptr; i = i->ai_next) {
    port::Address a;
    a.length = i->ai_addrlen;
    std::memcpy(&a.storage, i->ai_addr, i->ai_addrlen);
    a.set_port(port);
    addresses.push_back(a);
  }
  return addresses;
}

Finding name_not_found(const std::string& host, const std::string& error) {
  return {Severity::problem, "name", fmt::format("{}: {}", host, error),
          "give an address, or add the name to /etc/hosts or to the name server"};
}

RouteFacts gather_route(const port::Address& to) {
  RouteFacts f{.peer = text_of(to)};
  const auto source = port::source_towards(to, {});
  if (!source.ok()) {
    f.error = std::strerror(source.error().code);
    return f;
  }
  f.source = text_of(*source);
  const Gid own = source->gid();
  f.loopback = device::is_loopback(own);
  for (const device::LocalAddress& a : device::local_addresses()) {
    if (a.gid != own || (a.scope_id != 0 && a.scope_id != source->scope())) continue;
    f.interface = a.interface;
    f.mtu = a.link_mtu;
  }
  const config::Options options =
      config::parse([](const char* name) { return std::getenv(name); }, nullptr);
  const device::Device device = device::make_device(options, device::local_addresses(), 0);
  for (size_t i = 0; i < device.gids.size() && !f.gid_index; ++i) {
    if (device.gids[i].gid == own) f.gid_index = i;
  }
  if (!device.gids.empty()) f.first_gid = device.gids.front().gid.to_string();
  return f;
}

Finding check_route(const RouteFacts& f) {
  if (!f.error.empty()) {
    return {Severity::problem, "route", fmt::format("no way to {}: {}", f.peer, f.error),
            fmt::format("see 'ip route get {}'; bring up an interface, or add a route", f.peer)};
  }
  std::string way = f.source == f.peer
                        ? fmt::format("{} is this machine", f.peer)
                        : fmt::format("to {} from {} ({}, MTU {})", f.peer, f.source,
                                      f.interface.empty() ? "?" : f.interface, f.mtu);
  if (!f.gid_index) {
    // To this machine any GID of it leads.
    if (f.source == f.peer || f.loopback) return {Severity::ok, "route", way, ""};
    return {Severity::problem, "route", fmt::format("{}; that address is no GID of weft0", way),
            fmt::format("set WEFT_IP={} for the program, so that it becomes GID 0; 'weft info' "
                        "shows the GIDs",
                        f.source)};
  }
  way += fmt::format(", GID index {}", *f.gid_index);
  if (*f.gid_index == 0 || f.source == f.peer) return {Severity::ok, "route", way, ""};
  return {Severity::note, "route",
          fmt::format("{}. Programs that choose no GID take index 0, {}", way, f.first_gid),
          fmt::format("perftest: -x {0}; ibv_rc_pingpong and its like: -g {0}; any program: "
                      "WEFT_IP={1}, which makes it index 0. rdma_cm finds it by itself",
                      *f.gid_index, f.source)};
}

Finding check_connection(const port::Address& to, std::chrono::milliseconds timeout) {
  const std::string peer = fmt::format("{} port {}", text_of(to), to.port());
  const int error = try_connect(to, timeout);
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
              fmt::format("TCP to {} gets no answer in {} ms", peer, timeout.count()),
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

}  // namespace weft::doctor
