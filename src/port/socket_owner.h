// To which user of this host a TCP socket belongs, as the kernel knows it: no packet can claim it,
// and no rights are needed to ask. No cancellation point.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string_view>

#include "base/result.h"
#include "port/address.h"
#include "port/tcp_stream.h"

namespace weft::port {

struct SocketOwner {
  uid_t user = 0;      // as the caller's user namespace numbers it
  uint64_t inode = 0;  // the socket's number, as in "socket:[4711]" of /proc/PID/fd

  // By a process? What the kernel only brings to its end, or has not handed out yet, is user 0's.
  bool held() const { return inode != 0; }
  friend bool operator==(const SocketOwner&, const SocketOwner&) = default;
};

// The owner of the socket of this network namespace at `local` that is connected to `remote`; with
// an empty `remote`, of the one that listens there and would get a connection to `local`. Nothing:
// there is none. Asks netlink (sock_diag(7)), and where that is not to be had, or knows of no such
// socket, /proc/net/tcp if `thorough`: that takes the time of all sockets of the host. Errors: the
// kernel tells this process nothing.
Result<std::optional<SocketOwner>, SystemError> tcp_owner(const Address& local,
                                                          const Address& remote, bool thorough);

// A descriptor of this process that is this socket; nothing where another process has it.
std::optional<int> own_descriptor(const SocketOwner& socket);

// From the text of /proc/net/tcp or /proc/net/tcp6. Lines that do not parse are passed over. Pure.
std::optional<SocketOwner> tcp_owner_in(std::string_view proc_net_tcp, const Address& local,
                                        const Address& remote);

}  // namespace weft::port
