#include "bench/network.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vector>

#include "bench/failure.h"

namespace weft::bench {
namespace {

constexpr const char* kOwnNamespace = "/proc/self/ns/net";

port::Fd own_namespace() {
  port::Fd fd{::open(kOwnNamespace, O_RDONLY | O_CLOEXEC)};
  if (!fd.valid()) throw system_failure(kOwnNamespace);
  return fd;
}

// Leaves this process where it was.
port::Fd new_namespace() {
  const port::Fd home = own_namespace();
  if (::unshare(CLONE_NEWNET) != 0) {
    throw system_failure("--netns makes network namespaces, for which it has to be run as root");
  }
  port::Fd fresh = own_namespace();
  if (::setns(home.get(), CLONE_NEWNET) != 0) throw system_failure("setns");
  return fresh;
}

// ip(8) with `arguments`, inside a namespace.
void run_ip(const port::Fd& where, const std::string& arguments) {
  std::vector<std::string> words{"ip"};
  for (size_t at = 0; at < arguments.size();) {
    const size_t end = std::min(arguments.find(' ', at), arguments.size());
    words.push_back(arguments.substr(at, end - at));
    at = end + 1;
  }
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);

  const pid_t child = ::fork();
  if (child < 0) throw system_failure("fork");
  if (child == 0) {
    if (::setns(where.get(), CLONE_NEWNET) == 0) ::execvp(argv[0], argv.data());
    ::_exit(127);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 127) {
    throw Failure{"--netns needs ip(8); install the package iproute2"};
  }
  throw Failure{fmt::format("'ip {}' failed; its reason stands above", arguments)};
}

void bring_up(const Place& place, const char* device) {
  run_ip(place.network_namespace, fmt::format("address add {}/24 dev {}", place.address, device));
  run_ip(place.network_namespace, fmt::format("link set {} up", device));
  run_ip(place.network_namespace, "link set lo up");
}

}  // namespace

Network loopback_network() {
  return {.name = "loopback", .initiator = {"127.0.0.1", {}}, .target = {"127.0.0.1", {}}};
}

Network veth_network() {
  // Nobody else is in these namespaces, so any addresses and names will do.
  Network network{.name = "veth",
                  .initiator = {"10.0.0.1", new_namespace()},
                  .target = {"10.0.0.2", new_namespace()}};
  run_ip(network.initiator.network_namespace,
         fmt::format("link add veth0 type veth peer name veth0 netns /proc/{}/fd/{}", ::getpid(),
                     network.target.network_namespace.get()));
  bring_up(network.initiator, "veth0");
  bring_up(network.target, "veth0");
  return network;
}

}  // namespace weft::bench
