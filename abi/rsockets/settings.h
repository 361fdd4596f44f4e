// What a program has set of a socket of streams. Each value can be set at any time; sizes count
// when the connection begins.
#pragma once

#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <optional>

#include "abi/rsockets/sizes.h"
#include "base/keepalive.h"

namespace weft::rsockets {

// Any thread may ask whether it blocks; all else has one user at a time.
class Settings {
 public:
  Settings() = default;
  Settings(const Settings& other) { *this = other; }
  // All but whether it blocks: a connection that is accepted blocks at first.
  Settings& operator=(const Settings& other) {
    sizes_ = other.sizes_;
    flags_ = other.flags_;
    return *this;
  }

  // As setsockopt(2) and getsockopt(2), but SO_ERROR. 0, or an errno value: ENOPROTOOPT for what
  // rsockets have not, EINVAL for a value that is too short or cannot be.
  int set(int level, int name, const void* value, socklen_t size);
  int get(int level, int name, void* value, socklen_t* size) const;

  const Sizes& sizes() const { return sizes_; }
  bool reuses_address() const { return flags_.reuse_address != 0; }
  bool only_ipv6() const { return flags_.only_ipv6 != 0; }
  int type_of_service() const { return flags_.type_of_service; }
  // How long close() may wait for what was sent; nothing: as long as it takes.
  std::optional<std::chrono::seconds> most_linger() const {
    const linger& l = flags_.linger_time;
    if (l.l_onoff == 0 || l.l_linger < 0) return std::nullopt;
    return std::chrono::seconds{l.l_linger};
  }

  // When the connection gives up a silent peer: SO_KEEPALIVE, TCP_KEEPIDLE and what belongs to it.
  Keepalive keepalive() const {
    return {.idle = flags_.keepalive != 0 ? flags_.keep_idle : 0,
            .interval = flags_.keep_interval,
            .count = flags_.keep_count};
  }

  bool nonblocking() const { return nonblocking_; }
  void set_nonblocking(bool on) { nonblocking_ = on; }

 private:
  // Kept for the program alone, but for those that have a function above.
  struct Flags {
    int reuse_address = 0;
    int keepalive = 0;
    int oob_inline = 0;
    int no_delay = 0;
    int keep_idle = 7200;  // s; these are the kernel's for TCP
    int only_ipv6 = 0;
    int type_of_service = 0;
    int keep_count = 9;
    int keep_interval = 75;  // s
    int largest_segment = 0;
    linger linger_time{0, 0};
  };
  struct Flag {
    int level;
    int name;
    int Flags::*value;
  };
  static const Flag* find(int level, int name);
  int set_size(int level, int name, int value);
  bool get_size(int level, int name, int& value) const;

  Sizes sizes_;
  Flags flags_;
  std::atomic<bool> nonblocking_{false};
};

}  // namespace weft::rsockets
