#include "sdp/rules/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <charconv>
#include <cstring>

namespace weft::sdp {
namespace {

constexpr uint8_t kBits = 128;
constexpr uint8_t kMapped = 96;  // bits before an address of IPv4

IpAddress of_ipv6(const in6_addr& address) {
  IpAddress a;
  std::memcpy(a.raw.data(), &address, a.raw.size());
  return a;
}

std::optional<IpAddress> parse_address(std::string_view text) {
  const std::string copy{text};  // for the zero at its end
  if (copy.size() != copy.find('\0') && copy.find('\0') != std::string::npos) return std::nullopt;
  in_addr ipv4{};
  if (inet_pton(AF_INET, copy.c_str(), &ipv4) == 1) {
    return IpAddress::from_ipv4(ntohl(ipv4.s_addr));
  }
  in6_addr ipv6{};
  if (inet_pton(AF_INET6, copy.c_str(), &ipv6) == 1) return of_ipv6(ipv6);
  return std::nullopt;
}

// The first `bits` bits of it, and zeros.
IpAddress cut(IpAddress address, uint8_t bits) {
  for (size_t i = 0; i < address.raw.size(); ++i) {
    const int kept = std::max(0, std::min(8, bits - static_cast<int>(8 * i)));
    address.raw[i] &= static_cast<uint8_t>(0xff00U >> kept);
  }
  return address;
}

}  // namespace

std::optional<Endpoint> Endpoint::from(const sockaddr* address, socklen_t size) {
  if (address == nullptr || size < sizeof(sa_family_t)) return std::nullopt;
  if (address->sa_family == AF_INET && size >= sizeof(sockaddr_in)) {
    sockaddr_in in{};
    std::memcpy(&in, address, sizeof in);
    return Endpoint{IpAddress::from_ipv4(ntohl(in.sin_addr.s_addr)), ntohs(in.sin_port)};
  }
  // The oldest form of an address of IPv6 ends before the scope.
  constexpr size_t kLeast = offsetof(sockaddr_in6, sin6_scope_id);
  if (address->sa_family == AF_INET6 && size >= kLeast) {
    sockaddr_in6 in{};
    std::memcpy(&in, address, kLeast);
    return Endpoint{of_ipv6(in.sin6_addr), ntohs(in.sin6_port)};
  }
  return std::nullopt;
}

std::string Endpoint::to_string() const {
  const std::string a = address.to_string();
  return (address.is_ipv4() ? a : "[" + a + "]") + ":" + std::to_string(port);
}

std::optional<AddressRange> AddressRange::parse(std::string_view text) {
  AddressRange range;
  if (text == "*") return range;
  const size_t slash = text.find('/');
  const auto address = parse_address(text.substr(0, slash));
  if (!address) return std::nullopt;
  // A mapped address that is written as IPv6 has a prefix of IPv6.
  const bool ipv4 = text.substr(0, slash).find(':') == std::string_view::npos;
  unsigned length = ipv4 ? kBits - kMapped : kBits;
  if (slash != std::string_view::npos) {
    const std::string_view digits = text.substr(slash + 1);
    const unsigned most = length;
    const char* const end = digits.data() + digits.size();
    const auto [stopped, error] = std::from_chars(digits.data(), end, length);
    if (error != std::errc{} || stopped != end || length > most) return std::nullopt;
  }
  range.prefix_ = static_cast<uint8_t>(ipv4 ? kMapped + length : length);
  range.first_ = cut(*address, range.prefix_);
  return range;
}

bool AddressRange::contains(const IpAddress& address) const {
  return cut(address, prefix_) == first_;
}

std::string AddressRange::to_string() const {
  if (*this == AddressRange{}) return "*";
  if (first_.is_ipv4() && prefix_ >= kMapped) {
    return first_.to_string() + "/" + std::to_string(prefix_ - kMapped);
  }
  char text[INET6_ADDRSTRLEN] = "";
  inet_ntop(AF_INET6, first_.raw.data(), text, sizeof text);
  return std::string{text} + "/" + std::to_string(prefix_);
}

}  // namespace weft::sdp
