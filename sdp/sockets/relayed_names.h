// Peers of connections whose descriptor is a wake-up connection (design/28): the kernel knows only
// that one's.
#pragma once

#include <atomic>
#include <optional>

#include "sdp/rdma/fabric.h"

namespace weft::sdp {

class RelayedNames {
 public:
  // `fd` was accepted just now, for this peer.
  static void add(int fd, const Address& peer);
  // Costs a load where there is none.
  static std::optional<Address> peer_of(int fd) { return count > 0 ? find(fd) : std::nullopt; }
  // The program closes it, or puts something else there.
  static void drop(int fd) {
    if (count > 0) forget(fd);
  }
  // A child has the descriptors, too.
  static void go_on_in_child();

 private:
  static std::optional<Address> find(int fd);
  static void forget(int fd);
  static inline std::atomic<int> count{0};
};

}  // namespace weft::sdp
