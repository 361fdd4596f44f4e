#include "device/gid_table.h"

#include <arpa/inet.h>

#include <algorithm>
#include <optional>
#include <tuple>

namespace weft::device {
namespace {

bool is_link_local(const Gid& gid) {
  return gid.is_ipv4() ? gid.ipv4() >> 16 == 0xa9fe : gid.is_link_local();
}

// Smaller is better.
auto rank(const LocalAddress& a) {
  return std::tuple(!a.gid.is_ipv4(), is_link_local(a.gid), a.default_route_metric, !a.running);
}

std::optional<Gid> parse_address(const std::string& text) {
  if (in_addr v4{}; inet_pton(AF_INET, text.c_str(), &v4) == 1)
    return Gid::from_ipv4(ntohl(v4.s_addr));
  Gid gid;
  if (inet_pton(AF_INET6, text.c_str(), gid.raw.data()) == 1) return gid;
  return std::nullopt;
}

// Whether the option ip means this address.
class Wish {
 public:
  explicit Wish(std::string_view text) {
    const size_t percent = text.find('%');
    gid_ = parse_address(std::string(text.substr(0, percent)));
    if (!gid_) {
      interface_ = text;
    } else if (percent != std::string_view::npos) {
      interface_ = text.substr(percent + 1);
    }
  }
  bool fits(const LocalAddress& a) const {
    return (!gid_ || *gid_ == a.gid) && (interface_.empty() || interface_ == a.interface);
  }

 private:
  std::optional<Gid> gid_;
  std::string_view interface_;
};

std::string no_such_address(std::string_view first, std::span<const LocalAddress> usable) {
  std::string s = "option ip: " + std::string(first) +
                  " is neither an address nor the name of an interface that is up and has an "
                  "address; there are";
  for (const LocalAddress& a : usable) s += " " + a.gid.to_string() + "%" + a.interface;
  return s + "; weft chooses";
}

}  // namespace

bool is_localhost(const Gid& gid) {
  constexpr Gid kLoopback6{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}};
  return gid == kLoopback6 || gid == Gid::from_ipv4(0x7f000001);
}

bool is_loopback(const Gid& gid) {
  return is_localhost(gid) || (gid.is_ipv4() && gid.ipv4() >> 24 == 127);
}

std::vector<GidEntry> make_gid_table(std::span<const LocalAddress> addresses,
                                     std::string_view first, std::string* complaint) {
  std::vector<LocalAddress> usable;
  for (const LocalAddress& a : addresses) {
    if (a.up && !a.gid.is_zero()) usable.push_back(a);
  }
  std::stable_sort(usable.begin(), usable.end(),
                   [](const auto& a, const auto& b) { return rank(a) < rank(b); });

  auto shown = [alone = std::all_of(usable.begin(), usable.end(), [](const auto& a) {
                  return is_loopback(a.gid);
                })](const LocalAddress& a) { return alone || !is_loopback(a.gid); };
  auto wished = usable.end();
  if (!first.empty()) {
    const Wish wish(first);
    wished =
        std::find_if(usable.begin(), usable.end(), [&](const auto& a) { return wish.fits(a); });
    if (wished == usable.end() && complaint != nullptr) *complaint = no_such_address(first, usable);
  }

  std::vector<GidEntry> table;
  auto add = [&](const LocalAddress& a) {
    if (table.size() == kMostGids) return;
    for (const GidEntry& e : table) {
      if (e.gid == a.gid && e.scope_id == a.scope_id) return;
    }
    table.push_back({a.gid, a.interface, a.ifindex, a.scope_id, a.link_mtu});
  };
  if (wished != usable.end()) add(*wished);
  for (const LocalAddress& a : usable) {
    if (shown(a)) add(a);
  }
  return table;
}

}  // namespace weft::device
