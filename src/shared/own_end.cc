#include "shared/own_end.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <map>
#include <mutex>

#include "base/fork_lock.h"

namespace weft::shared {
namespace {

std::mutex g_lock;
const HeldOverFork<g_lock> g_over_fork;

}  // namespace

// Of this process, by nonce. A child of fork(2) keeps what its parent had then: no connection of
// its own has one of these nonces.
class OwnEnd::All {
 public:
  void add(const wire::HostOffer::Nonce& nonce, const Ends& ends) {
    const std::lock_guard hold{g_lock};
    all_.emplace(nonce, ends);
  }
  void remove(const wire::HostOffer::Nonce& nonce, const Ends& ends) {
    const std::lock_guard hold{g_lock};
    if (const auto it = find(nonce, ends); it != all_.end()) all_.erase(it);
  }
  bool has(const wire::HostOffer::Nonce& nonce, const Ends& ends) {
    const std::lock_guard hold{g_lock};
    return find(nonce, ends) != all_.end();
  }

 private:
  using Map = std::multimap<wire::HostOffer::Nonce, Ends>;
  Map::iterator find(const wire::HostOffer::Nonce& nonce, const Ends& ends) {
    const auto [from, to] = all_.equal_range(nonce);
    for (auto it = from; it != to; ++it) {
      if (it->second == ends) return it;
    }
    return all_.end();
  }

  Map all_;
};

OwnEnd::All& OwnEnd::all = *new All;  // threads may outlive static objects

OwnEnd::OwnEnd(const wire::HostOffer::Nonce& nonce, const port::TcpStream& tcp)
    : nonce_(nonce),
      ends_{.local = socket_at(tcp.local()), .peer = socket_at(tcp.peer())},
      process_(::getpid()) {
  all.add(nonce_, ends_);
}

// Not in a child of fork(2): it may be about to abandon its parent's connections, with the lock
// taken.
OwnEnd::~OwnEnd() {
  if (::getpid() == process_) all.remove(nonce_, ends_);
}

bool OwnEnd::other_is_here() const {
  return all.has(nonce_, {.local = ends_.peer, .peer = ends_.local});
}

// Asked of the kernel, for /proc may be another namespace's, or not there. What it cannot say
// counts as yes: nothing is pulled then.
bool is_this_process(int pid) {
  if (::syscall(SYS_tgkill, ::getpid(), pid, 0) == 0) return true;
  return errno != ESRCH && errno != EINVAL;
}

}  // namespace weft::shared
