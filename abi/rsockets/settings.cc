#include "abi/rsockets/settings.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <rdma/rsocket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "abi/rsockets/wire.h"

namespace weft::rsockets {
namespace {

constexpr int kMostQueue = 0xFFFE;
constexpr int kSmallestBuffer = 4096;
constexpr int kLargestBuffer = 1 << 28;
constexpr uint32_t kMostMappedSlots = 0x7F00;  // what the private data can say

// A whole number of halves that begin where any data may lie.
uint32_t buffer_of(int bytes) {
  return static_cast<uint32_t>(std::clamp(bytes, kSmallestBuffer, kLargestBuffer)) & ~uint32_t{127};
}

int store(const void* what, socklen_t has, void* value, socklen_t* size) {
  if (value == nullptr || size == nullptr) return EFAULT;
  *size = std::min(*size, has);
  std::memcpy(value, what, *size);
  return 0;
}

}  // namespace

const Settings::Flag* Settings::find(int level, int name) {
  static constexpr Flag kFlags[] = {
      {SOL_SOCKET, SO_REUSEADDR, &Flags::reuse_address},
      {SOL_SOCKET, SO_KEEPALIVE, &Flags::keepalive},
      {SOL_SOCKET, SO_OOBINLINE, &Flags::oob_inline},
      {IPPROTO_TCP, TCP_NODELAY, &Flags::no_delay},
      {IPPROTO_TCP, TCP_KEEPIDLE, &Flags::keep_idle},
      {IPPROTO_IPV6, IPV6_V6ONLY, &Flags::only_ipv6},
      {IPPROTO_IP, IP_TOS, &Flags::type_of_service},
      {IPPROTO_TCP, TCP_KEEPCNT, &Flags::keep_count},
      {IPPROTO_TCP, TCP_KEEPINTVL, &Flags::keep_interval},
      {IPPROTO_TCP, TCP_MAXSEG, &Flags::largest_segment},
  };
  const auto* flag = std::find_if(std::begin(kFlags), std::end(kFlags), [&](const Flag& f) {
    return f.level == level && f.name == name;
  });
  return flag == std::end(kFlags) ? nullptr : flag;
}

int Settings::set_size(int level, int name, int value) {
  if (level == SOL_SOCKET && name == SO_SNDBUF) {
    sizes_.send_buffer = buffer_of(value);
  } else if (level == SOL_SOCKET && name == SO_RCVBUF) {
    sizes_.receive_buffer = buffer_of(value);
  } else if (level == SOL_RDMA && value >= 0) {
    const auto queue = static_cast<uint16_t>(std::min(value, kMostQueue));
    if (name == RDMA_SQSIZE) {
      sizes_.send_queue = queue;
    } else if (name == RDMA_RQSIZE) {
      sizes_.receive_queue = queue;
    } else if (name == RDMA_INLINE) {
      sizes_.inline_data = queue;
    } else if (name == RDMA_IOMAPSIZE) {
      sizes_.mapped_slots = sayable_slots(std::min(static_cast<uint32_t>(value), kMostMappedSlots));
    } else {
      return ENOPROTOOPT;
    }
  } else {
    return level == SOL_RDMA ? EINVAL : ENOPROTOOPT;
  }
  return 0;
}

bool Settings::get_size(int level, int name, int& value) const {
  if (level == SOL_SOCKET && name == SO_SNDBUF) {
    value = static_cast<int>(sizes_.send_buffer);
  } else if (level == SOL_SOCKET && name == SO_RCVBUF) {
    value = static_cast<int>(sizes_.receive_buffer);
  } else if (level == SOL_SOCKET && name == SO_TYPE) {
    value = SOCK_STREAM;
  } else if (level == SOL_RDMA && name == RDMA_SQSIZE) {
    value = sizes_.send_queue;
  } else if (level == SOL_RDMA && name == RDMA_RQSIZE) {
    value = sizes_.receive_queue;
  } else if (level == SOL_RDMA && name == RDMA_INLINE) {
    value = sizes_.inline_data;
  } else if (level == SOL_RDMA && name == RDMA_IOMAPSIZE) {
    value = static_cast<int>(sizes_.mapped_slots);
  } else {
    return false;
  }
  return true;
}

int Settings::set(int level, int name, const void* value, socklen_t size) {
  if (value == nullptr) return EFAULT;
  if (level == SOL_SOCKET && name == SO_LINGER) {
    if (size < sizeof flags_.linger_time) return EINVAL;
    std::memcpy(&flags_.linger_time, value, sizeof flags_.linger_time);
    return 0;
  }
  if (size < sizeof(int)) return EINVAL;
  int number = 0;
  std::memcpy(&number, value, sizeof number);
  if (const Flag* flag = find(level, name); flag != nullptr) {
    Flags changed = flags_;
    changed.*flag->value = number;
    const Keepalive keepalive{
        .idle = changed.keep_idle, .interval = changed.keep_interval, .count = changed.keep_count};
    if (keepalive.idle == 0 || !keepalive.valid()) return EINVAL;
    flags_ = changed;
    return 0;
  }
  return set_size(level, name, number);
}

int Settings::get(int level, int name, void* value, socklen_t* size) const {
  if (level == SOL_SOCKET && name == SO_LINGER)
    return store(&flags_.linger_time, sizeof flags_.linger_time, value, size);
  int number = 0;
  if (const Flag* flag = find(level, name); flag != nullptr) {
    number = flags_.*flag->value;
  } else if (!get_size(level, name, number)) {
    return ENOPROTOOPT;
  }
  return store(&number, sizeof number, value, size);
}

}  // namespace weft::rsockets
