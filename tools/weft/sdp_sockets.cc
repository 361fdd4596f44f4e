#include "weft/sdp_sockets.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/gid.h"
#include "kit/kernel_files.h"
#include "weft/stat.h"

namespace weft::tools {
namespace {

using sdp::StatHeader;
using sdp::StatSlot;

// A copy of what is in the file, which its owner goes on to write. No mapping: the owner could make
// the file shorter.
template <class T>
bool copy(int file, size_t offset, T& to) {
  return ::pread(file, static_cast<void*>(&to), sizeof to, static_cast<off_t>(offset)) ==
         static_cast<ssize_t>(sizeof to);
}

SdpTraffic traffic_of(const sdp::Traffic& t) {
  return {t.bytes_sent, t.bytes_received, t.messages_sent, t.messages_received,
          t.bytes_read, t.bytes_written,  t.credits};
}

std::string name_of(const sdp::StatName& name) {
  Gid address;
  address.raw = name.address;
  const std::string a = address.to_string();
  return address.is_ipv4() ? fmt::format("{}:{}", a, name.port)
                           : fmt::format("[{}]:{}", a, name.port);
}

// What another process has written there may be anything.
sdp::Fallback fallback_of(const StatSlot& slot) {
  const auto reason = static_cast<size_t>(slot.fallback);
  return reason < sdp::kFallbacks ? slot.fallback : sdp::Fallback::none;
}

// The number that a process has in its own PID namespace; 0 when it is gone.
uint32_t own_pid(pid_t pid) {
  std::ifstream status(fmt::format("/proc/{}/status", pid));
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with("NSpid:")) continue;
    std::istringstream numbers(line.substr(line.find(':') + 1));
    uint32_t found = 0;
    for (uint32_t n = 0; numbers >> n;) found = n;
    return found;
  }
  return 0;
}

const char* name_of(sdp::Transport transport) {
  return transport == sdp::Transport::sdp ? "sdp" : "tcp";
}

nlohmann::json traffic_json(const SdpTraffic& t) {
  return {{"bytes_sent", t.bytes_sent},       {"bytes_received", t.bytes_received},
          {"messages_sent", t.messages_sent}, {"messages_received", t.messages_received},
          {"bytes_read", t.bytes_read},       {"bytes_written", t.bytes_written}};
}

SdpTraffic sum_of(const SdpProcess& p) {
  SdpTraffic sum = p.ended;
  for (const SdpConnection& c : p.connections) {
    sum.bytes_sent += c.traffic.bytes_sent;
    sum.bytes_received += c.traffic.bytes_received;
    sum.messages_sent += c.traffic.messages_sent;
    sum.messages_received += c.traffic.messages_received;
    sum.bytes_read += c.traffic.bytes_read;
    sum.bytes_written += c.traffic.bytes_written;
  }
  return sum;
}

nlohmann::json fallbacks_json(const SdpProcess& p) {
  auto all = nlohmann::json::object();
  for (size_t i = 0; i < p.fallbacks.size(); ++i) {
    if (p.fallbacks[i] > 0) all[text(static_cast<sdp::Fallback>(i))] = p.fallbacks[i];
  }
  return all;
}

std::string connection_text(const SdpConnection& c) {
  std::string line =
      fmt::format("  {} {} {} {} {}", name_of(c.transport), c.server ? "server" : "client", c.own,
                  c.server ? "<-" : "->", c.peer);
  if (c.transport == sdp::Transport::tcp) return line + fmt::format(": {}\n", text(c.fallback));
  const SdpTraffic& t = c.traffic;
  line += fmt::format(": sent {} bytes in {} messages, received {} in {}", t.bytes_sent,
                      t.messages_sent, t.bytes_received, t.messages_received);
  if (t.bytes_read > 0) line += fmt::format(" ({} by RDMA Read)", t.bytes_read);
  if (t.bytes_written > 0) line += fmt::format(" ({} by RDMA Write)", t.bytes_written);
  return line + fmt::format(", {} credits{}\n", t.credits, c.relayed ? ", relayed" : "");
}

}  // namespace

std::optional<SdpProcess> read_sdp_file(int file, uint32_t owner) {
  StatHeader header;
  if (!copy(file, 0, header) || header.magic != sdp::kStatMagic ||
      header.layout != sdp::kStatLayout || header.pid != owner) {
    return std::nullopt;
  }
  SdpProcess p{.pid = {},
               .program = {},
               .connected = header.connected,
               .accepted = header.accepted,
               .ended = traffic_of(header.ended),
               .connections = {}};
  std::copy(header.fallbacks.begin(), header.fallbacks.end(), p.fallbacks.begin());
  const uint32_t used = std::min<uint32_t>(header.used, sdp::kStatSlots);
  for (uint32_t i = 0; i < used; ++i) {
    StatSlot slot;
    if (!copy(file, sdp::stat_slot_offset(i), slot)) break;
    if (slot.transport == sdp::Transport::none) continue;
    p.connections.push_back({.transport = slot.transport,
                             .server = slot.server,
                             .relayed = slot.relayed,
                             .fallback = fallback_of(slot),
                             .own = name_of(slot.own),
                             .peer = name_of(slot.peer),
                             .traffic = traffic_of(slot.traffic)});
  }
  return p;
}

std::optional<SdpProcess> read_sdp_process(pid_t pid) {
  const std::string folder = fmt::format("/proc/{}/fd", pid);
  const std::string wanted = fmt::format("/memfd:{} ", sdp::kStatName);
  for (const std::string& name : kit::names_in(folder)) {
    std::error_code error;
    const std::string path = fmt::format("{}/{}", folder, name);
    if (!std::filesystem::read_symlink(path, error).string().starts_with(wanted)) continue;
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0) continue;
    auto found = read_sdp_file(file, own_pid(pid));
    ::close(file);
    if (!found) continue;
    found->pid = pid;
    found->program = program_name(pid);
    return found;
  }
  return std::nullopt;
}

std::string sdp_as_text(std::span<const SdpProcess> processes) {
  std::string text;
  for (const SdpProcess& p : processes) {
    uint64_t by_tcp = 0;
    for (const uint64_t count : p.fallbacks) by_tcp += count;
    const SdpTraffic sum = sum_of(p);
    text += fmt::format(
        "{} {}, sockets: {} connected and {} accepted by SDP, {} by TCP; sent {} bytes, received "
        "{}\n",
        p.pid, p.program, p.connected, p.accepted, by_tcp, sum.bytes_sent, sum.bytes_received);
    for (const SdpConnection& c : p.connections) text += connection_text(c);
  }
  return text;
}

nlohmann::json sdp_as_json(std::span<const SdpProcess> processes) {
  auto list = nlohmann::json::array();
  for (const SdpProcess& p : processes) {
    nlohmann::json json = {{"pid", p.pid},
                           {"program", p.program},
                           {"connected", p.connected},
                           {"accepted", p.accepted},
                           {"fallbacks", fallbacks_json(p)},
                           {"counters", traffic_json(sum_of(p))},
                           {"connections", nlohmann::json::array()}};
    for (const SdpConnection& c : p.connections) {
      nlohmann::json one = {{"transport", name_of(c.transport)},
                            {"role", c.server ? "server" : "client"},
                            {"own", c.own},
                            {"peer", c.peer}};
      if (c.transport == sdp::Transport::tcp) {
        one["fallback"] = text(c.fallback);
      } else {
        one["relayed"] = c.relayed;
        one["credits"] = c.traffic.credits;
        one["counters"] = traffic_json(c.traffic);
      }
      json["connections"].push_back(std::move(one));
    }
    list.push_back(std::move(json));
  }
  return list;
}

std::string sdp_as_prometheus(std::span<const SdpProcess> processes) {
  struct Family {
    const char* name;
    const char* help;
    uint64_t (*of)(const SdpProcess&);
  };
  constexpr Family kFamilies[] = {
      {"connected", "Connections that the program made by SDP",
       [](const SdpProcess& p) { return p.connected; }},
      {"accepted", "Connections that came by SDP", [](const SdpProcess& p) { return p.accepted; }},
      {"bytes_sent", "Bytes of streams sent by SDP",
       [](const SdpProcess& p) { return sum_of(p).bytes_sent; }},
      {"bytes_received", "Bytes of streams received by SDP",
       [](const SdpProcess& p) { return sum_of(p).bytes_received; }},
      {"messages_sent", "SDP messages sent",
       [](const SdpProcess& p) { return sum_of(p).messages_sent; }},
      {"messages_received", "SDP messages received",
       [](const SdpProcess& p) { return sum_of(p).messages_received; }},
  };
  std::string out;
  const auto labels = [](const SdpProcess& p) {
    return fmt::format("pid=\"{}\",program=\"{}\"", p.pid, label_text(p.program));
  };
  for (const Family& family : kFamilies) {
    if (processes.empty()) break;
    const std::string metric = fmt::format("weft_sdp_{}_total", family.name);
    out += fmt::format("# HELP {} {}\n# TYPE {} counter\n", metric, family.help, metric);
    for (const SdpProcess& p : processes) {
      out += fmt::format("{}{{{}}} {}\n", metric, labels(p), family.of(p));
    }
  }
  std::string fallbacks;
  for (const SdpProcess& p : processes) {
    for (size_t i = 0; i < p.fallbacks.size(); ++i) {
      if (p.fallbacks[i] == 0) continue;
      fallbacks += fmt::format("weft_sdp_fallbacks_total{{{},reason=\"{}\"}} {}\n", labels(p),
                               text(static_cast<sdp::Fallback>(i)), p.fallbacks[i]);
    }
  }
  if (fallbacks.empty()) return out;
  return out +
         "# HELP weft_sdp_fallbacks_total Connections that were TCP's\n"
         "# TYPE weft_sdp_fallbacks_total counter\n" +
         fallbacks;
}

}  // namespace weft::tools
