#include "measure/own_memory.h"

#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

namespace weft::measure {
namespace {

// The kilobytes behind "NAME:" in a file of the kind of /proc/self/status, as bytes; 0 when absent.
double kilobytes(const char* file, const std::string& name) {
  std::ifstream in{file};
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with(name + ":")) continue;
    std::istringstream words{line.substr(name.size() + 1)};
    double value = 0;
    words >> value;
    return value * 1024;
  }
  return 0;
}

// Bytes of one object of each kind, "name active_objs num_objs objsize ..." in /proc/slabinfo.
class ObjectSizes {
 public:
  ObjectSizes() {
    std::ifstream in{"/proc/slabinfo"};
    for (std::string line; std::getline(in, line);) {
      std::istringstream words{line};
      std::string name;
      double active = 0;
      double total = 0;
      double size = 0;
      if (words >> name >> active >> total >> size) found_[name] = size;
    }
  }
  double of(const char* name, double typical) const {
    const auto found = found_.find(name);
    return found != found_.end() ? found->second : typical;
  }
  // A file, the directory entry that every file has, and its place in an epoll set.
  double descriptor() const {
    return of("filp", 192) + of("dentry", 192) + of("eventpoll_epi", 128);
  }
  // Not every connection has a port of its own, but it may.
  double tcp_socket(int domain) const {
    return (domain == AF_INET6 ? of("TCPv6", 2496) : of("TCP", 2368)) +
           of("sock_inode_cache", 832) + of("tcp_bind_bucket", 128) + of("tcp_bind2_bucket", 128);
  }

 private:
  std::map<std::string, double> found_;
};

int socket_option(int fd, int name) {
  int value = -1;
  socklen_t length = sizeof value;
  return ::getsockopt(fd, SOL_SOCKET, name, &value, &length) == 0 ? value : -1;
}

// What is queued in a socket, or kept to be queued.
double queued_bytes(int fd) {
  std::array<uint32_t, SK_MEMINFO_VARS> memory{};
  socklen_t length = sizeof memory;
  if (::getsockopt(fd, SOL_SOCKET, SO_MEMINFO, memory.data(), &length) != 0) return 0;
  return static_cast<double>(memory[SK_MEMINFO_RMEM_ALLOC]) + memory[SK_MEMINFO_WMEM_QUEUED] +
         memory[SK_MEMINFO_FWD_ALLOC] + memory[SK_MEMINFO_OPTMEM];
}

}  // namespace

double resident_bytes() {
  return kilobytes("/proc/self/status", "VmRSS") + kilobytes("/proc/self/status", "VmPTE");
}

double kernel_bytes() {
  const ObjectSizes sizes;
  double bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int fd = std::stoi(entry.path().filename());
    bytes += sizes.descriptor();
    if (socket_option(fd, SO_PROTOCOL) != IPPROTO_TCP) continue;
    bytes += sizes.tcp_socket(socket_option(fd, SO_DOMAIN)) + queued_bytes(fd);
  }
  return bytes;
}

}  // namespace weft::measure
