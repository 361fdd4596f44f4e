#include "stream/address_options.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "base/number_in.h"
#include "cli/command_line.h"
#include "kit/failure.h"
#include "kit/internet.h"
#include "port/fd.h"

namespace weft::stream {
namespace {

bool is_ipv4(const std::string& address) {
  in_addr parsed{};
  return ::inet_pton(AF_INET, address.c_str(), &parsed) == 1;
}

// An address, or what may be the name of a host.
bool may_be_host(const std::string& host) {
  constexpr const char* kOfNames =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.";
  if (host.empty() || host.find_first_not_of(kOfNames) != std::string::npos) return false;
  return host.find_first_not_of("0123456789.") != std::string::npos || is_ipv4(host);
}

bool is_port(const std::string& text) {
  return number_in<uint16_t>(text).value_or(0) != 0;
}

constexpr uint32_t kLastPort = 65535;

}  // namespace

void check_address(const char* option, const std::string& address) {
  in6_addr parsed{};
  if (is_ipv4(address) || ::inet_pton(AF_INET6, address.c_str(), &parsed) == 1) return;
  cli::wrong_usage(fmt::format("{}: '{}' is no address", option, address));
}

void check_ports(const char* option, uint32_t first, uint32_t streams) {
  if (first + streams - 1 <= kLastPort) return;
  cli::wrong_usage(fmt::format("{}: {} streams have no ports from {} on, the last one is {}",
                               option, streams, first, kLastPort));
}

void check_own_address(const std::string& address) {
  if (address.empty()) return;
  if (!is_ipv4(address)) {
    cli::wrong_usage(fmt::format("--bind: '{}' is not an IPv4 address", address));
  }
  const port::Fd any{::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
  const sockaddr_in at = kit::address_of(address, 0);
  if (::bind(any.get(), kit::generic(at), sizeof at) == 0 || errno != EADDRNOTAVAIL) return;
  throw kit::Failure{fmt::format(
      "--bind {}: this host has no such address; 'ip address' lists those that it has", address)};
}

void check_place(const char* option, const std::string& place, bool with_port) {
  const auto refuse = [&](const char* why) {
    cli::wrong_usage(fmt::format("{}: '{}' is not {}{}", option, place,
                                 with_port ? "ADDRESS:PORT" : "ADDRESS or ADDRESS:PORT", why));
  };
  if (std::count(place.begin(), place.end(), ':') > 1) refuse(". Streams go over IPv4");
  const size_t colon = place.find(':');
  if (with_port && colon == std::string::npos) refuse("");
  if (const std::string host = place.substr(0, colon); !may_be_host(host)) {
    cli::wrong_usage(
        fmt::format("{}: '{}' is neither an IPv4 address nor the name of a host", option, host));
  }
  if (colon != std::string::npos && !is_port(place.substr(colon + 1))) {
    refuse(": a port is 1 to 65535");
  }
}

}  // namespace weft::stream
