#include "doctor/local_port.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bit>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <sstream>

#include "base/contents_of.h"
#include "base/gid.h"
#include "base/number_in.h"
#include "kit/kernel_files.h"

namespace weft::doctor {
namespace {

namespace fs = std::filesystem;

// The kernel writes an address as words of 32 bits, each in the order of the host.
std::optional<Gid> address_in(std::string_view hex) {
  static_assert(std::endian::native == std::endian::little);
  if (hex.size() != 8 && hex.size() != 32) return std::nullopt;
  Gid gid;
  for (size_t i = 0; i < hex.size() / 8; ++i) {
    const auto word = number_in<uint32_t>(hex.substr(8 * i, 8), 16);
    if (!word) return std::nullopt;
    std::memcpy(&gid.raw[4 * i], &*word, sizeof *word);
  }
  if (hex.size() == 32) return gid;
  uint32_t v4 = 0;
  std::memcpy(&v4, gid.raw.data(), sizeof v4);
  return Gid::from_ipv4(__builtin_bswap32(v4));
}

// "1234 (rping)" of each process that has one of these sockets.
void name_processes(std::vector<PortHolder>& holders) {
  std::error_code error;
  for (const auto& process : fs::directory_iterator("/proc", error)) {
    const std::string pid = process.path().filename();
    if (!number_in<uint32_t>(pid)) continue;
    // Not those of other users.
    for (const auto& fd : fs::directory_iterator(process.path() / "fd", error)) {
      const std::string target = fs::read_symlink(fd.path(), error);
      if (!target.starts_with("socket:[")) continue;
      const auto inode =
          number_in<uint64_t>(std::string_view(target).substr(8, target.size() - 9), 10);
      for (PortHolder& h : holders) {
        if (!inode || h.inode != *inode || !h.process.empty()) continue;
        std::string name = contents_of(process.path() / "comm");
        if (name.ends_with('\n')) name.pop_back();
        h.process = fmt::format("{} ({})", pid, name);
      }
    }
  }
}

std::string words_of(const PortHolder& h) {
  const std::string socket = fmt::format("{} on {}", h.protocol, h.address);
  if (!h.process.empty())
    return fmt::format("{}: process {} of user {}", socket, h.process, h.user);
  return fmt::format("{}: a process of user {} that this user may not look at", socket, h.user);
}

}  // namespace

std::vector<PortHolder> holders_in(std::string_view table, const std::string& protocol,
                                   uint16_t port) {
  constexpr uint32_t kListen = 0x0a;  // a state of TCP in the kernel
  std::vector<PortHolder> holders;
  std::istringstream lines{std::string(table)};
  for (std::string line; std::getline(lines, line);) {
    // "sl local:port remote:port st tx:rx tr:tm->when retrnsmt uid timeout inode ..."
    std::istringstream in(line);
    std::vector<std::string> words;
    for (std::string word; in >> word;) words.push_back(word);
    if (words.size() < 10) continue;
    const size_t colon = words[1].find(':');
    if (colon == std::string::npos) continue;
    const auto address = address_in(std::string_view(words[1]).substr(0, colon));
    const auto own = number_in<uint16_t>(std::string_view(words[1]).substr(colon + 1), 16);
    const auto state = number_in<uint32_t>(words[3], 16);
    const auto user = number_in<uint32_t>(words[7], 10);
    const auto inode = number_in<uint64_t>(words[9], 10);
    if (!address || !own || !state || !user || !inode || *own != port) continue;
    if (protocol == "TCP" && *state != kListen) continue;
    holders.push_back({protocol, address->to_string(), *user, *inode, ""});
  }
  return holders;
}

std::vector<PortHolder> holders_of(uint16_t port) {
  std::vector<PortHolder> holders;
  for (const auto& [file, protocol] : std::initializer_list<std::pair<const char*, const char*>>{
           {"tcp", "TCP"}, {"tcp6", "TCP"}, {"udp", "UDP"}, {"udp6", "UDP"}}) {
    // Of this thread's namespace: /proc/net is that of the process's first thread.
    const std::string table = contents_of(fmt::format("/proc/thread-self/net/{}", file));
    for (PortHolder& h : holders_in(table, protocol, port)) holders.push_back(std::move(h));
  }
  name_processes(holders);
  return holders;
}

Finding judge_local_port(uint16_t port, const std::vector<PortHolder>& holders) {
  if (holders.empty()) {
    return {Severity::ok, "local-port", fmt::format("nobody on this host holds port {}", port), ""};
  }
  std::vector<std::string> words;
  words.reserve(holders.size());
  for (const PortHolder& h : holders) words.push_back(words_of(h));
  return {Severity::problem, "local-port",
          fmt::format("port {} of this host is held, {}", port, fmt::join(words, "; ")),
          fmt::format("end that program, or choose another port. As root, 'ss -lntup sport = :{}' "
                      "shows all of it",
                      port)};
}

}  // namespace weft::doctor
