#include "bench/network.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <vector>

#include "kit/failure.h"

namespace weft::bench {
namespace {

constexpr const char* kOwnNamespace = "/proc/self/ns/net";

port::Fd own_namespace() {
  port::Fd fd{::open(kOwnNamespace, O_RDONLY | O_CLOEXEC)};
  if (!fd.valid()) throw kit::system_failure(kOwnNamespace);
  return fd;
}

// Leaves this process where it was.
port::Fd new_namespace() {
  const port::Fd home = own_namespace();
  if (::unshare(CLONE_NEWNET) != 0) {
    throw kit::system_failure(
        "a benchmark between network namespaces has to be run as root, to make them");
  }
  port::Fd fresh = own_namespace();
  if (::setns(home.get(), CLONE_NEWNET) != 0) throw kit::system_failure("setns");
  return fresh;
}

// A program, inside a namespace. `package`: where it comes from.
void run_in(const port::Fd& where, std::vector<std::string> words, const char* package) {
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);

  const pid_t child = ::fork();
  if (child < 0) throw kit::system_failure("fork");
  if (child == 0) {
    if (::setns(where.get(), CLONE_NEWNET) == 0) ::execvp(argv[0], argv.data());
    ::_exit(127);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 127) {
    throw kit::Failure{
        fmt::format("{} is needed for this; install the package {}", words[0], package)};
  }
  throw kit::Failure{fmt::format("'{}' failed; its reason stands above", fmt::join(words, " "))};
}

// ip(8) with `arguments`, inside a namespace.
void run_ip(const port::Fd& where, const std::string& arguments) {
  std::vector<std::string> words{"ip"};
  for (size_t at = 0; at < arguments.size();) {
    const size_t end = std::min(arguments.find(' ', at), arguments.size());
    words.push_back(arguments.substr(at, end - at));
    at = end + 1;
  }
  run_in(where, std::move(words), "iproute2");
}

// UDP's own cutting up has a switch of its own, which older kernels do not know.
void choose_offloads(const port::Fd& where, const char* device, Offloads offloads) {
  if (offloads == Offloads::unchanged) return;
  const char* state = name_of(offloads);
  std::vector<std::string> words{"ethtool", "-K", device};
  for (const char* feature : {"tx", "rx", "sg", "tso", "gso", "gro"}) {
    words.emplace_back(feature);
    words.emplace_back(state);
  }
  run_in(where, std::move(words), "ethtool");
}

void drop_in(const port::Fd& where, double share) {
  constexpr unsigned kParts = 100'000;
  run_in(where, {"nft", "flush ruleset"}, "nftables");
  const auto parts = static_cast<unsigned>(std::lround(share * kParts));
  if (parts == 0) return;
  run_in(
      where,
      {"nft", fmt::format("add table inet weft; add chain inet weft arriving {{ type filter hook "
                          "prerouting priority -300; }}; add rule inet weft arriving numgen "
                          "random mod {} < {} drop",
                          kParts, parts)},
      "nftables");
}

void bring_up(const Place& place, const char* device, unsigned mtu) {
  run_ip(place.network_namespace, fmt::format("address add {}/24 dev {}", place.address, device));
  if (mtu != 0) {
    run_ip(place.network_namespace, fmt::format("link set {} mtu {}", device, mtu));
  }
  run_ip(place.network_namespace, fmt::format("link set {} up", device));
  run_ip(place.network_namespace, "link set lo up");
}

}  // namespace

const char* name_of(Offloads offloads) {
  switch (offloads) {
    case Offloads::unchanged:
      return "unchanged";
    case Offloads::on:
      return "on";
    case Offloads::off:
      break;
  }
  return "off";
}

Network loopback_network() {
  return {.name = "loopback", .initiator = {"127.0.0.1", {}}, .target = {"127.0.0.1", {}}};
}

Network veth_network(unsigned mtu, Offloads offloads) {
  // Nobody else is in these namespaces, so any addresses and names will do.
  Network network{.name = "veth",
                  .initiator = {"10.0.0.1", new_namespace()},
                  .target = {"10.0.0.2", new_namespace()}};
  run_ip(network.initiator.network_namespace,
         fmt::format("link add veth0 type veth peer name veth0 netns /proc/{}/fd/{}", ::getpid(),
                     network.target.network_namespace.get()));
  bring_up(network.initiator, "veth0", mtu);
  bring_up(network.target, "veth0", mtu);
  for (const Place* place : {&network.initiator, &network.target}) {
    choose_offloads(place->network_namespace, "veth0", offloads);
  }
  return network;
}

Network lossy_network(unsigned mtu) {
  Network network = veth_network(mtu);
  for (const Place* place : {&network.initiator, &network.target}) {
    run_ip(place->network_namespace, "link set veth0 gso_max_segs 1");
  }
  network.lossy = true;
  return network;
}

Network relayed_network(unsigned mtu) {
  constexpr const char* kDevice = "link0";
  // Of the relay, which may be late, no packets are to be lost here.
  constexpr unsigned kPackets = 10'000;
  Network network{.name = "relay",
                  .initiator = {"10.0.0.1", new_namespace()},
                  .target = {"10.0.0.2", new_namespace()}};
  std::vector<port::Fd> devices;
  const port::Fd home = own_namespace();
  for (const Place* place : {&network.initiator, &network.target}) {
    if (::setns(place->network_namespace.get(), CLONE_NEWNET) != 0) {
      throw kit::system_failure("setns");
    }
    devices.push_back(open_tun(kDevice));
    if (::setns(home.get(), CLONE_NEWNET) != 0) throw kit::system_failure("setns");
    run_ip(place->network_namespace, fmt::format("link set {} txqueuelen {}", kDevice, kPackets));
    bring_up(*place, kDevice, mtu);
  }
  network.relay = std::make_unique<Relay>(std::move(devices[0]), std::move(devices[1]));
  return network;
}

void Network::shape(double loss, double delay_ms, double mbps) const {
  if (relay != nullptr) return relay->shape(Link::of(delay_ms, loss, mbps));
  if (delay_ms > 0 || mbps > 0) throw kit::Failure{"this network has no shape of its own"};
  if (!lossy) {
    if (loss > 0) throw kit::Failure{"this network cannot lose packets"};
    return;
  }
  drop_in(initiator.network_namespace, loss);
  drop_in(target.network_namespace, loss);
}

}  // namespace weft::bench
