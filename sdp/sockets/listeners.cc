#include "sdp/sockets/listeners.h"

#include <pthread.h>
#include <sys/socket.h>

#include <cerrno>
#include <map>
#include <mutex>

#include "sdp/sockets/decide.h"
#include "sdp/sockets/library.h"
#include "sdp/sockets/mirror.h"
#include "sdp/sockets/real.h"

namespace weft::sdp {
namespace {

struct Listener {
  unsigned long long cookie = 0;
  int backlog = 0;
  bool fresh = true;  // this process has not waited for it
};
std::mutex g_lock;
std::map<int, Listener> g_listeners;

}  // namespace

void Listeners::add(int fd, int backlog) {
  const std::lock_guard lock{g_lock};
  static const int registered = ::pthread_atfork(nullptr, nullptr, forget_in_child);
  (void)registered;
  const unsigned long long cookie = cookie_of(fd);
  Listener& listener = g_listeners[fd];
  // listen() again changes the backlog alone.
  if (listener.cookie == cookie) return;
  if (listener.cookie == 0 || !listener.fresh)
    __atomic_add_fetch(&fresh_count_, 1, __ATOMIC_RELAXED);
  listener = {cookie, backlog, true};
}

void Listeners::begin(int fd) {
  int backlog = 0;
  {
    const std::lock_guard lock{g_lock};
    const auto found = g_listeners.find(fd);
    if (found == g_listeners.end() || !found->second.fresh) return;
    found->second.fresh = false;
    __atomic_sub_fetch(&fresh_count_, 1, __ATOMIC_RELAXED);
    // The number may be another socket's by now.
    if (cookie_of(fd) != found->second.cookie) {
      g_listeners.erase(found);
      return;
    }
    backlog = found->second.backlog;
  }
  const int error = errno;
  if (may_listen(fd)) {
    Library* library = Library::get();
    if (library != nullptr) (void)library->listen(fd, backlog);
  }
  errno = error;
}

// The child may be the one that accepts; who was first has the port (design/27).
void Listeners::forget_in_child() {
  fresh_count_ = 0;
  for (auto& [fd, listener] : g_listeners) {
    listener.fresh = true;
    ++fresh_count_;
  }
}

}  // namespace weft::sdp
