#include "doctor/checks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "base/adapter_ports.h"

namespace weft::doctor {
namespace {

// Descriptors that a process has besides one per connected QP: its own files, listeners, event
// channels.
constexpr uint64_t kOtherDescriptors = 64;
constexpr uint64_t kManyQps = 1000;
constexpr uint32_t kFewPorts = 64;

bool contains(const std::vector<std::string>& list, const char* word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

}  // namespace

Finding check_libraries(const std::vector<LibraryFact>& libraries) {
  Finding finding{Severity::ok, "libraries", "", ""};
  std::vector<std::string> names;
  for (const LibraryFact& library : libraries) {
    if (!library.error.empty()) {
      return {Severity::problem, "libraries", fmt::format("{}: {}", library.path, library.error),
              library.remedy.empty()
                  ? "build or install weft again; bin/weft and lib/weft/ belong side by side"
                  : library.remedy};
    }
    names.push_back(std::filesystem::path(library.path).filename());
    finding.sentence = std::filesystem::path(library.path).parent_path();
  }
  finding.sentence = fmt::format("{} load from {}", fmt::join(names, " and "), finding.sentence);
  return finding;
}

Finding check_addresses(const std::vector<AddressFact>& addresses, const std::string& complaint,
                        const std::string& netlink_error) {
  if (addresses.empty() && !netlink_error.empty()) {
    return {Severity::problem, "addresses",
            fmt::format("this process may not ask the kernel for its addresses (netlink: {}), so "
                        "weft0 has no GID; whether there are any was not seen",
                        netlink_error),
            "allow AF_NETLINK: RestrictAddressFamilies= of the service, or the container's seccomp "
            "profile"};
  }
  if (!complaint.empty()) {
    return {Severity::problem, "addresses", complaint,
            addresses.empty() ? "" : "correct the option; 'weft info --options' explains it"};
  }
  if (addresses.empty()) {
    return {Severity::problem, "addresses",
            "no network interface that is up has an IP address, so weft0 has no GID",
            "ip link set lo up, for programs on this machine; an address on a network interface "
            "for others"};
  }
  std::vector<std::string> texts;
  texts.reserve(addresses.size());
  for (const AddressFact& a : addresses) {
    texts.push_back(fmt::format("{} ({}, MTU {})", a.address, a.interface, a.mtu));
  }
  const std::string all = fmt::format("{}", fmt::join(texts, ", "));
  if (std::all_of(addresses.begin(), addresses.end(),
                  [](const AddressFact& a) { return a.loopback; })) {
    return {Severity::note, "addresses", fmt::format("only loopback: {}", all),
            "programs on this machine reach each other; for other machines bring up an interface "
            "with an "
            "IP address, or name one with WEFT_IP"};
  }
  return {Severity::ok, "addresses", all, ""};
}

Finding check_descriptors(uint64_t soft, uint64_t hard) {
  const uint64_t qps = hard > kOtherDescriptors ? hard - kOtherDescriptors : 0;
  const char* remedy =
      "raise the hard limit of open files: 'nofile' in /etc/security/limits.conf, LimitNOFILE= of "
      "the "
      "service, or --ulimit nofile= of the container";
  if (qps < 16) {
    return {Severity::problem, "descriptors",
            fmt::format("at most {} open files for a process; each connected QP is one", hard),
            remedy};
  }
  if (qps < kManyQps) {
    return {Severity::note, "descriptors",
            fmt::format("at most {} open files for a process: room for about {} connected QPs",
                        hard, qps),
            remedy};
  }
  return {Severity::ok, "descriptors",
          soft == hard ? fmt::format("{} open files for a process", hard)
                       : fmt::format("{} open files for a process under 'weft run' (soft limit {})",
                                     hard, soft),
          ""};
}

Finding check_congestion(const CongestionFact& congestion) {
  Finding finding{Severity::ok, "congestion", "", ""};
  if (congestion.host_default != "bbr") {
    finding.sentence = fmt::format("TCP streams use the host's {}",
                                   congestion.host_default.empty() ? "choice, which is not readable"
                                                                   : congestion.host_default);
    return finding;
  }
  if (contains(congestion.usable, "cubic")) {
    finding.sentence = "the host's default is bbr; weft chooses cubic for peers close by";
    return finding;
  }
  const bool reno = contains(congestion.usable, "reno");
  finding.severity = Severity::note;
  finding.sentence = fmt::format(
      "the host's default is bbr, which is slow on short links, and cubic is not allowed to you; "
      "{}",
      reno ? "weft chooses reno for peers close by" : "reno neither, so streams stay with bbr");
  finding.remedy =
      "as root: modprobe -a tcp_cubic; sysctl -w net.ipv4.tcp_allowed_congestion_control='reno bbr "
      "cubic'";
  return finding;
}

Finding check_socket_memory(const SocketMemoryFact& memory) {
  if (!memory.receive || !memory.send) {
    return {Severity::note, "memory", "the kernel does not say what buffers datagram sockets get",
            "a sandbox may forbid sockets; see 'sockets' below"};
  }
  const bool enough = *memory.receive >= kDatagramBuffer && *memory.send >= kDatagramBuffer;
  if (enough) {
    return {Severity::ok, "memory",
            fmt::format("a datagram socket gets the buffers of {} bytes that it asks for",
                        kDatagramBuffer),
            ""};
  }
  return {
      Severity::note, "memory",
      fmt::format("a datagram socket asks for buffers of {} bytes and gets {} for receiving, {} "
                  "for sending: small for UC and UD, which lose what does not fit (RC over TCP "
                  "is not concerned)",
                  kDatagramBuffer, *memory.receive, *memory.send),
      fmt::format("as root: sysctl -w net.core.rmem_max={0} net.core.wmem_max={0}, and for "
                  "good in a file of /etc/sysctl.d",
                  kDatagramBuffer)};
}

Finding check_ports(const std::optional<PortFact>& ports) {
  if (!ports) {
    return {Severity::note, "ports", "net.ipv4.ip_local_port_range is not readable here",
            "see that /proc/sys is mounted"};
  }
  const uint32_t free = ports->usable > ports->in_use ? ports->usable - ports->in_use : 0;
  const std::string values = fmt::format(
      "net.ipv4.ip_local_port_range {}-{}: {} ports that weft can use, {} of them taken",
      ports->low, ports->high, ports->usable, ports->in_use);
  const char* remedy =
      "as root: sysctl -w net.ipv4.ip_local_port_range='32768 60999', or end what holds the ports";
  if (free == 0) return {Severity::problem, "ports", values, remedy};
  if (free < kFewPorts) return {Severity::note, "ports", values, remedy};
  return {Severity::ok, "ports", values, ""};
}

Finding check_bind(const std::string& bind_error) {
  if (bind_error.empty()) {
    return {Severity::ok, "sockets", "the same port number can be bound on TCP and UDP", ""};
  }
  return {Severity::problem, "sockets",
          fmt::format("no port number can be bound on both TCP and UDP: {}", bind_error),
          "a container's or service's sandbox may forbid sockets (seccomp, "
          "RestrictAddressFamilies=); allow "
          "AF_INET and AF_INET6"};
}

Finding check_crc(const std::string& engine) {
  if (engine == "isa-l") return {Severity::ok, "crc", "CRC32C is computed by ISA-L", ""};
  if (engine.starts_with("vpclmulqdq")) {
    return {Severity::ok, "crc", "CRC32C is computed by the processor's VPCLMULQDQ", ""};
  }
  return {Severity::note, "crc",
          fmt::format("CRC32C is computed by '{}'; ISA-L (libisal.so.2) is faster and not there",
                      engine),
          "apt-get install libisal2; weft finds it by itself"};
}

Finding check_kernel_devices(const std::vector<std::string>& devices) {
  if (devices.empty())
    return {Severity::ok, "kernel", "no RDMA device of the kernel, and none is needed", ""};
  return {
      Severity::note, "kernel",
      fmt::format(
          "the kernel has RDMA devices of its own ({}); under 'weft run' programs see weft0 alone",
          fmt::join(devices, ", ")),
      "start a program without 'weft run' when it is to use the kernel's devices"};
}

Finding check_options(const std::vector<std::string>& errors) {
  if (errors.empty())
    return {Severity::ok, "options", "no WEFT_ variable is misspelt or out of range", ""};
  return {Severity::note, "options", fmt::format("{}", fmt::join(errors, "; ")),
          "correct or unset the variable"};
}

Finding check_sdp(const SdpFact& sdp) {
  if (!sdp.library.error.empty()) {
    return {Severity::note, "sdp", fmt::format("{}: {}", sdp.library.path, sdp.library.error),
            "sockets by SDP (weft run --sdp) need it; " +
                (sdp.library.remedy.empty() ? "build or install weft again" : sdp.library.remedy)};
  }
  if (!sdp.complaints.empty()) {
    return {Severity::note, "sdp", fmt::format("{}", fmt::join(sdp.complaints, "; ")),
            "correct the file; these lines have no effect, and docs/sdp-rules.md has the grammar"};
  }
  return {Severity::ok, "sdp",
          fmt::format("libweft-sdp.so loads, {}",
                      sdp.rules.empty() ? "and no file of rules is there: SDP where it can be"
                                        : "rules are those of " + sdp.rules),
          ""};
}

std::vector<Finding> check_all(const DoctorFacts& facts) {
  return {check_libraries(facts.libraries),
          check_addresses(facts.addresses, facts.device_complaint, facts.netlink_error),
          check_descriptors(facts.descriptors_soft, facts.descriptors_hard),
          check_congestion(facts.congestion),
          check_socket_memory(facts.socket_memory),
          check_ports(facts.ports),
          check_bind(facts.bind_error),
          check_crc(facts.crc_engine),
          check_kernel_devices(facts.kernel_devices),
          check_options(facts.option_errors),
          check_sdp(facts.sdp)};
}

}  // namespace weft::doctor
