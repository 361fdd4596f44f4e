// What the library says about the host: fork safety, sysfs, Ethernet.
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <new>
#include <string>
#include <string_view>

#include "abi/ibverbs/errors.h"

using namespace weft;
using namespace weft::abi;

extern "C" {

// Nothing is pinned, so that the copies that fork makes of pages do no harm.
int ibv_fork_init() {
  return 0;
}
ibv_fork_status ibv_is_fork_initialized() {
  return IBV_FORK_UNNEEDED;
}
int ibv_dontfork_range(void*, size_t) {
  return 0;
}
int ibv_dofork_range(void*, size_t) {
  return 0;
}

// It has no way to say that there is no memory.
const char* ibv_get_sysfs_path() {
  static const auto path = [] {
    // A set-user-ID program does not trust its environment.
    const char* env = ::getuid() == ::geteuid() ? std::getenv("SYSFS_PATH") : nullptr;
    std::string_view p = env == nullptr ? "/sys" : env;
    while (p.ends_with('/')) p.remove_suffix(1);
    std::array<char, 256> text{};  // what rdma-core has room for
    p.copy(text.data(), text.size() - 1);
    return text;
  }();
  return path.data();
}

// The content without its last line end, and its length; -1 when there is none or it does not fit.
int ibv_read_sysfs_file(const char* folder, const char* file, char* buffer, size_t size) try {
  const int fd = ::open((std::string{folder} + "/" + file).c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return -1;
  ssize_t length = ::read(fd, buffer, size);
  ::close(fd);
  if (length <= 0) return static_cast<int>(length);
  if (buffer[length - 1] == '\n') {
    --length;
  } else if (static_cast<size_t>(length) == size) {
    return -1;
  }
  buffer[length] = '\0';
  return static_cast<int>(length);
} catch (const std::bad_alloc&) {
  errno = ENOMEM;
  return -1;
}

// Providers of RoCE hardware ask for the neighbour's MAC address; weft's kernel sockets need none.
int ibv_resolve_eth_l2_from_gid(ibv_context*, ibv_ah_attr*, uint8_t*, uint16_t*) {
  return -refuse(EOPNOTSUPP);
}

}  // extern "C"
