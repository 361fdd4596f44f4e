#include "sdp/sockets/relayed_names.h"

#include <map>
#include <mutex>
#include <new>

#include "sdp/loop/handlers.h"
#include "sdp/sockets/mirror.h"
#include "sdp/sockets/table.h"

namespace weft::sdp {
namespace {

Mutex g_lock;
// By cookie, so that copies of the descriptor are known as well. Never destroyed: programs use
// sockets while they end.
auto& g_peers = *new std::map<unsigned long long, Address>;

}  // namespace

void RelayedNames::add(int fd, const Address& peer) {
  if (Table::in_borrowed_memory()) return;
  const std::lock_guard lock{g_lock};
  g_peers[cookie_of(fd)] = peer;
  count = static_cast<int>(g_peers.size());
}

std::optional<Address> RelayedNames::find(int fd) {
  const unsigned long long cookie = cookie_of(fd);
  const std::lock_guard lock{g_lock};
  const auto found = g_peers.find(cookie);
  if (found == g_peers.end()) return std::nullopt;
  return found->second;
}

void RelayedNames::forget(int fd) {
  if (Table::in_borrowed_memory()) return;
  const unsigned long long cookie = cookie_of(fd);
  const std::lock_guard lock{g_lock};
  g_peers.erase(cookie);
  count = static_cast<int>(g_peers.size());
}

void RelayedNames::go_on_in_child() {
  new (&g_lock) Mutex;
}

}  // namespace weft::sdp
