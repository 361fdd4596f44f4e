#include "doctor/facts.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/adapter_ports.h"
#include "base/crc32c.h"
#include "config/options.h"
#include "device/device.h"
#include "device/system.h"
#include "doctor/socket.h"
#include "kit/kernel_files.h"
#include "kit/launch.h"
#include "sdp/rules/load.h"

namespace weft::doctor {

using kit::add_local_ports;
using kit::kLibraries;
using kit::names_in;
using kit::own_library_folder;
using kit::read_numbers;
using kit::read_words;

namespace {

// Loads `libraries` up to and including `last` in this process; the loader's words when one fails.
std::string load(const std::vector<std::string>& libraries, size_t last) {
  for (size_t i = 0; i <= last; ++i) {
    if (dlopen(libraries[i].c_str(), RTLD_NOW | RTLD_GLOBAL) == nullptr) return dlerror();
  }
  return {};
}

// As load(), in a child process: what the libraries do when they are loaded is not done to weft
// itself.
std::string load_in_child(const std::vector<std::string>& libraries, size_t last) {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) return fmt::format("cannot be tried: {}", std::strerror(errno));
  const pid_t child = fork();
  if (child == 0) {
    const std::string error = load(libraries, last);
    const bool told =
        write(ends[1], error.data(), error.size()) == static_cast<ssize_t>(error.size());
    _exit(told && error.empty() ? 0 : 1);
  }
  close(ends[1]);
  std::string words;
  std::array<char, 512> piece{};
  for (ssize_t got = 0; (got = read(ends[0], piece.data(), piece.size())) > 0;) {
    words.append(piece.data(), static_cast<size_t>(got));
  }
  close(ends[0]);
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) return "cannot be tried: fork failed";
  if (WIFSIGNALED(status))
    return fmt::format("crashes when it is loaded ({})", strsignal(WTERMSIG(status)));
  return words;
}

std::vector<LibraryFact> gather_libraries() {
  const std::string folder = own_library_folder();
  if (const auto objection = kit::objection_to(folder)) {
    return {{kLibraries.front(), objection->what, objection->remedy}};
  }
  std::vector<std::string> paths;
  paths.reserve(kLibraries.size());
  for (const char* name : kLibraries) paths.push_back(folder + "/" + name);
  std::vector<LibraryFact> facts;
  for (size_t i = 0; i < paths.size(); ++i) {
    const bool exists = access(paths[i].c_str(), F_OK) == 0;
    facts.push_back({paths[i], exists ? load_in_child(paths, i) : "does not exist"});
  }
  return facts;
}

// The rules as a program started now would read them.
SdpFact gather_sdp(const std::vector<LibraryFact>& libraries) {
  SdpFact fact;
  if (!libraries.front().remedy.empty()) {
    fact.library = libraries.front();
    return fact;
  }
  std::vector<std::string> paths;
  paths.reserve(libraries.size() + 1);
  for (const LibraryFact& library : libraries) paths.push_back(library.path);
  paths.push_back(own_library_folder() + "/" + kit::kSdpLibrary);
  const bool exists = access(paths.back().c_str(), F_OK) == 0;
  fact.library = {paths.back(), exists ? load_in_child(paths, paths.size() - 1) : "does not exist"};
  const sdp::LoadedRules rules = sdp::load_rules(sdp::RulesEnvironment::of_process());
  const bool read = access(rules.file.c_str(), F_OK) == 0;
  if (read || !rules.configuration.complaints.empty()) fact.rules = rules.file;
  for (const sdp::Complaint& complaint : rules.configuration.complaints) {
    fact.complaints.push_back(sdp::sentence(rules.file, complaint));
  }
  return fact;
}

// As weft's datagram sockets do: beyond the limits where the user may.
std::optional<uint64_t> granted(const Socket& socket, int force, int ask) {
  const auto wanted = static_cast<int>(kDatagramBuffer);
  int got = 0;
  socklen_t length = sizeof got;
  if (setsockopt(socket.get(), SOL_SOCKET, force, &wanted, sizeof wanted) != 0) {
    setsockopt(socket.get(), SOL_SOCKET, ask, &wanted, sizeof wanted);
  }
  if (getsockopt(socket.get(), SOL_SOCKET, ask, &got, &length) != 0) return std::nullopt;
  return static_cast<uint64_t>(got) / 2;  // socket(7): the kernel tells the double
}

SocketMemoryFact gather_socket_memory() {
  const Socket socket(AF_INET, SOCK_DGRAM);
  return {.receive = granted(socket, SO_RCVBUFFORCE, SO_RCVBUF),
          .send = granted(socket, SO_SNDBUFFORCE, SO_SNDBUF)};
}

CongestionFact gather_congestion() {
  CongestionFact fact;
  const auto words = read_words("/proc/sys/net/ipv4/tcp_congestion_control");
  if (words && !words->empty()) fact.host_default = words->front();
  for (const char* name : {"cubic", "reno"}) {
    // The kernel's answer, which knows of rights, modules and network namespaces.
    const Socket socket(AF_INET, SOCK_STREAM);
    if (setsockopt(socket.get(), IPPROTO_TCP, TCP_CONGESTION, name,
                   static_cast<socklen_t>(std::strlen(name))) == 0) {
      fact.usable.emplace_back(name);
    }
  }
  return fact;
}

std::optional<PortFact> gather_ports() {
  const auto range = read_numbers("/proc/sys/net/ipv4/ip_local_port_range");
  if (!range || range->size() != 2) return std::nullopt;
  PortFact fact;
  fact.low = static_cast<uint16_t>((*range)[0]);
  fact.high = static_cast<uint16_t>((*range)[1]);
  std::set<uint16_t> taken;
  for (const char* table : {"tcp", "tcp6", "udp", "udp6"}) {
    add_local_ports(fmt::format("/proc/net/{}", table), taken);
  }
  for (uint32_t port = fact.low; port <= fact.high; ++port) {
    if (!is_adapter_port(port)) continue;
    ++fact.usable;
    if (taken.contains(static_cast<uint16_t>(port))) ++fact.in_use;
  }
  return fact;
}

// Binds UDP to any port and TCP to the same number, as weft does for each engine.
std::string try_to_bind() {
  std::string error;
  for (int attempt = 0; attempt < 16; ++attempt) {
    const Socket udp(AF_INET, SOCK_DGRAM);
    const Socket tcp(AF_INET, SOCK_STREAM);
    if (udp.get() < 0 || tcp.get() < 0) return "no IPv4 socket can be opened";
    sockaddr_in address{};
    address.sin_family = AF_INET;
    socklen_t length = sizeof address;
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    if (bind(udp.get(), generic, length) != 0 || getsockname(udp.get(), generic, &length) != 0) {
      return fmt::format("UDP: {}", std::strerror(errno));
    }
    const int on = 1;
    setsockopt(tcp.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(tcp.get(), generic, length) == 0 && listen(tcp.get(), 1) == 0) return {};
    error = fmt::format("TCP port {}: {}", ntohs(address.sin_port), std::strerror(errno));
  }
  return error;
}

// The kernel tells its addresses over netlink, which a sandbox may forbid.
std::string try_netlink() {
  const Socket socket(AF_NETLINK, SOCK_RAW);  // protocol 0 is NETLINK_ROUTE
  return socket.get() >= 0 ? std::string{} : std::strerror(errno);
}

config::Options gather_options(std::vector<std::string>& errors) {
  config::Options options =
      config::parse([](const char* name) { return std::getenv(name); }, &errors);
  for (std::string& sentence : config::unknown_variables(environ))
    errors.push_back(std::move(sentence));
  return options;
}

void gather_device(const config::Options& options, DoctorFacts& facts) {
  device::Device device = device::device_of_host(options);
  for (const device::GidEntry& entry : device.gids) {
    facts.addresses.push_back(
        {entry.gid.to_string(), entry.interface, entry.link_mtu, device::is_loopback(entry.gid)});
  }
  facts.device_complaint = std::move(device.complaint);
}

}  // namespace

DoctorFacts gather_facts() {
  DoctorFacts facts;
  facts.libraries = gather_libraries();
  facts.sdp = gather_sdp(facts.libraries);
  facts.netlink_error = try_netlink();
  gather_device(gather_options(facts.option_errors), facts);
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    facts.descriptors_soft = limit.rlim_cur;
    facts.descriptors_hard = limit.rlim_max;
  }
  facts.congestion = gather_congestion();
  facts.socket_memory = gather_socket_memory();
  facts.ports = gather_ports();
  facts.bind_error = try_to_bind();
  facts.crc_engine = crc32c_engine();
  facts.kernel_devices = names_in("/sys/class/infiniband");
  return facts;
}

}  // namespace weft::doctor
