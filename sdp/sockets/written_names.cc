#include "sdp/sockets/written_names.h"

#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>

#include "base/gid.h"
#include "base/kept_errno.h"
#include "sdp/rules/address.h"
#include "sdp/sockets/mirror.h"
#include "sdp/sockets/real.h"

namespace weft::sdp {
namespace {

// An abstract name, which no file stands for. All behind the tag is hexadecimal: the family, the
// scope of link-local addresses, both addresses with their ports, and the socket's cookie, for
// names are unique.
constexpr std::string_view kTag = "weft-sdp ";
constexpr size_t kAddressDigits = 32;
constexpr size_t kPortDigits = 4;
constexpr size_t kScopeDigits = 8;
constexpr size_t kNamesLength = 1 + kScopeDigits + 2 * (kAddressDigits + kPortDigits);

void put_hex(std::string& text, uint64_t value, size_t digits) {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  for (size_t i = digits; i-- > 0;) text.push_back(kDigits[value >> (4 * i) & 0xf]);
}

std::optional<uint64_t> take_hex(std::string_view& text, size_t digits) {
  if (text.size() < digits) return std::nullopt;
  uint64_t value = 0;
  const char* end = text.data() + digits;
  const auto [at, error] = std::from_chars(text.data(), end, value, 16);
  text.remove_prefix(digits);
  if (error != std::errc{} || at != end) return std::nullopt;
  return value;
}

bool put_endpoint(std::string& text, const Address& address) {
  const auto endpoint = Endpoint::from(&address.any, address.size());
  if (!endpoint) return false;
  for (const uint8_t byte : endpoint->address.raw) put_hex(text, byte, 2);
  put_hex(text, endpoint->port, kPortDigits);
  return true;
}

std::optional<Address> take_endpoint(std::string_view& text, sa_family_t family, uint32_t scope) {
  Gid address;
  for (uint8_t& byte : address.raw) {
    const auto value = take_hex(text, 2);
    if (!value) return std::nullopt;
    byte = static_cast<uint8_t>(*value);
  }
  const auto port = take_hex(text, kPortDigits);
  if (!port || (family == AF_INET && !address.is_ipv4())) return std::nullopt;
  Address found{};
  found.any.sa_family = family;
  if (family == AF_INET) {
    found.v4.sin_addr.s_addr = htonl(address.ipv4());
  } else {
    std::memcpy(&found.v6.sin6_addr, address.raw.data(), address.raw.size());
    found.v6.sin6_scope_id = scope;
  }
  found.set_port(static_cast<uint16_t>(*port));
  return found;
}

std::optional<WrittenNames> parse(std::string_view text) {
  if (!text.starts_with(kTag)) return std::nullopt;
  text.remove_prefix(kTag.size());
  if (text.size() <= kNamesLength) return std::nullopt;
  const auto family = take_hex(text, 1);
  const auto scope = take_hex(text, kScopeDigits);
  if (!family || !scope || (*family != AF_INET && *family != AF_INET6)) return std::nullopt;
  const auto kind = static_cast<sa_family_t>(*family);
  const auto own = take_endpoint(text, kind, static_cast<uint32_t>(*scope));
  const auto peer = take_endpoint(text, kind, static_cast<uint32_t>(*scope));
  if (!own || !peer) return std::nullopt;
  return WrittenNames{*own, *peer};
}

}  // namespace

void write_names(int fd, const WrittenNames& names) {
  static_assert(AF_INET < 16 && AF_INET6 < 16);
  const SameErrno same;
  const sa_family_t family = names.own.any.sa_family;
  std::string text{kTag};
  put_hex(text, family, 1);
  put_hex(text, family == AF_INET6 ? names.own.v6.sin6_scope_id : 0, kScopeDigits);
  if (put_endpoint(text, names.own) && put_endpoint(text, names.peer)) {
    put_hex(text, cookie_of(fd), 16);
    sockaddr_un name{};
    static_assert(kTag.size() + kNamesLength + 16 < sizeof name.sun_path);
    name.sun_family = AF_UNIX;
    std::memcpy(name.sun_path + 1, text.data(), text.size());
    (void)::bind(fd, reinterpret_cast<const sockaddr*>(&name),
                 static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size()));
  }
}

std::optional<WrittenNames> written_names(int fd) {
  const SameErrno same;
  sockaddr_un name{};
  socklen_t size = sizeof name;
  std::optional<WrittenNames> found;
  constexpr socklen_t kStart = offsetof(sockaddr_un, sun_path) + 1;
  if (real().getsockname(fd, reinterpret_cast<sockaddr*>(&name), &size) == 0 &&
      name.sun_family == AF_UNIX && size > kStart && name.sun_path[0] == '\0') {
    found = parse({name.sun_path + 1, std::min<size_t>(size, sizeof name) - kStart});
  }
  return found;
}

}  // namespace weft::sdp
