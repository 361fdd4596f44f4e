#include "stream/multicast.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>

#include "base/number_in.h"
#include "kit/failure.h"

namespace weft::stream {
namespace {

constexpr uint32_t kMostInARow = 4096;

in_addr parsed(const std::string& text) {
  in_addr address{};
  if (::inet_pton(AF_INET, text.c_str(), &address) != 1) {
    throw kit::Failure{fmt::format("'{}' is no IPv4 address", text)};
  }
  return address;
}

std::string text_of(uint32_t address) {
  return fmt::format("{}.{}.{}.{}", address >> 24, address >> 16 & 0xff, address >> 8 & 0xff,
                     address & 0xff);
}

uint32_t count_behind(const std::string& text, const std::string& whole) {
  const auto count = number_in<uint32_t>(text);
  if (!count || *count >= kMostInARow) {
    throw kit::Failure{fmt::format("'{}' is not ADDRESS[+N][@SOURCE]", whole)};
  }
  return *count;
}

in_addr interface_of(const std::string& interface) {
  return interface.empty() ? in_addr{.s_addr = INADDR_ANY} : parsed(interface);
}

}  // namespace

bool is_multicast(const std::string& address) {
  in_addr parts{};
  return ::inet_pton(AF_INET, address.c_str(), &parts) == 1 && IN_MULTICAST(ntohl(parts.s_addr));
}

std::vector<Group> groups_of(const std::string& text) {
  const size_t at = text.find('@');
  const std::string source = at == std::string::npos ? "" : text.substr(at + 1);
  const std::string row = text.substr(0, at);
  const size_t plus = row.find('+');
  const uint32_t more = plus == std::string::npos ? 0 : count_behind(row.substr(plus + 1), text);
  const uint32_t first = ntohl(parsed(row.substr(0, plus)).s_addr);
  if (at != std::string::npos) (void)parsed(source);
  if (!IN_MULTICAST(first) || !IN_MULTICAST(uint64_t{first} + more)) {
    throw kit::Failure{
        fmt::format("'{}': groups have addresses from 224.0.0.0 to 239.255.255.255", text)};
  }
  std::vector<Group> groups;
  for (uint32_t i = 0; i <= more; ++i) groups.push_back({text_of(first + i), source});
  return groups;
}

void join(const port::Fd& socket, const Group& group, const std::string& interface) {
  // Else the kernel hands it what others of this machine have joined, by other interfaces too.
  const int off = 0;
  (void)::setsockopt(socket.get(), IPPROTO_IP, IP_MULTICAST_ALL, &off, sizeof off);
  int done = 0;
  if (group.source.empty()) {
    const ip_mreq wish{.imr_multiaddr = parsed(group.address),
                       .imr_interface = interface_of(interface)};
    done = ::setsockopt(socket.get(), IPPROTO_IP, IP_ADD_MEMBERSHIP, &wish, sizeof wish);
  } else {
    const ip_mreq_source wish{.imr_multiaddr = parsed(group.address),
                              .imr_interface = interface_of(interface),
                              .imr_sourceaddr = parsed(group.source)};
    done = ::setsockopt(socket.get(), IPPROTO_IP, IP_ADD_SOURCE_MEMBERSHIP, &wish, sizeof wish);
  }
  if (done == 0) return;
  if (errno == ENOBUFS) {
    throw kit::Failure{
        fmt::format("group {}: a socket may join no more; raise net.ipv4.igmp_max_memberships (and "
                    "igmp_max_msf for sources) by sysctl",
                    group.address)};
  }
  if (errno == ENODEV) {
    throw kit::Failure{fmt::format(
        "group {}: no interface leads there; name one by its address with --bind", group.address)};
  }
  throw kit::system_failure("joining group " + group.address);
}

void leave_by(const port::Fd& socket, const std::string& interface, int hops) {
  if (!interface.empty()) {
    const in_addr from = parsed(interface);
    if (::setsockopt(socket.get(), IPPROTO_IP, IP_MULTICAST_IF, &from, sizeof from) != 0) {
      throw kit::system_failure("multicast by the interface of " + interface);
    }
  }
  if (::setsockopt(socket.get(), IPPROTO_IP, IP_MULTICAST_TTL, &hops, sizeof hops) != 0) {
    throw kit::system_failure("the hops of multicast");
  }
}

}  // namespace weft::stream
