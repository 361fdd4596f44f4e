#include "sdp/sockets/registrations.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <mutex>

#include "sdp/loop/handlers.h"
#include "sdp/sockets/table.h"

namespace weft::sdp {
namespace {

Mutex g_lock;
long this_thread() {
  return ::syscall(SYS_gettid);
}

// Never destroyed: programs close descriptors while they end.
struct Kept {
  Registrations::OfSocket registered;
  // One that all descriptors of a socket share, and who else knows it.
  std::shared_ptr<char> socket = std::make_shared<char>();
  std::shared_ptr<char> of_others;
  long made_by = this_thread();
};
using Sockets = std::map<int, Kept>;
Sockets& g_sockets = *new Sockets;

bool control(int epoll, int operation, int fd, epoll_event* event) {
  return ::syscall(SYS_epoll_ctl, epoll, operation, fd, event) == 0;
}

}  // namespace

void Registrations::keep_over_forks() {
  const auto lock = [] {
    g_lock.lock();
    // One that another thread has under way is not for the child.
    const long self = this_thread();
    for (auto& [fd, kept] : g_sockets) {
      if (kept.made_by == self) kept.of_others = kept.socket;
    }
  };
  const auto unlock = [] { g_lock.unlock(); };
  (void)::pthread_atfork(lock, unlock, unlock);
}

void Registrations::begin(int fd) {
  if (static_cast<unsigned>(fd) >= kMost || Table::in_borrowed_memory()) return;
  const std::lock_guard lock{g_lock};
  g_sockets[fd] = {};
  is_kept[static_cast<unsigned>(fd)] = true;
}

void Registrations::copy_kept(int from, int to) {
  if (static_cast<unsigned>(to) >= kMost || Table::in_borrowed_memory()) return;
  const std::lock_guard lock{g_lock};
  const auto copied = g_sockets.find(from);
  if (copied == g_sockets.end()) return;
  g_sockets[to] = {
      .registered = {}, .socket = copied->second.socket, .of_others = copied->second.of_others};
  is_kept[static_cast<unsigned>(to)] = true;
}

void Registrations::share(int fd) {
  const std::lock_guard lock{g_lock};
  const auto found = g_sockets.find(fd);
  if (found != g_sockets.end()) found->second.of_others = found->second.socket;
}

bool Registrations::is_shared(int fd) {
  const std::lock_guard lock{g_lock};
  const auto found = g_sockets.find(fd);
  return found != g_sockets.end() && found->second.socket.use_count() > 1;
}

void Registrations::note_kept(int epoll, int operation, int fd, const epoll_event* event) {
  const std::lock_guard lock{g_lock};
  OfSocket& all = g_sockets[fd].registered;
  if (operation == EPOLL_CTL_DEL) {
    all.erase(epoll);
  } else if (event != nullptr) {
    all[epoll] = *event;
  }
}

Registrations::OfSocket Registrations::take_out(int fd) {
  const std::lock_guard lock{g_lock};
  const auto found = g_sockets.find(fd);
  if (found == g_sockets.end()) return {};
  // Where `fd` is not, the epoll was closed, and its number is another one's.
  std::erase_if(found->second.registered, [fd](const auto& registered) {
    return !control(registered.first, EPOLL_CTL_DEL, fd, nullptr);
  });
  return found->second.registered;
}

void Registrations::put_back(int fd) {
  const std::lock_guard lock{g_lock};
  const auto found = g_sockets.find(fd);
  if (found == g_sockets.end()) return;
  for (auto& [epoll, event] : found->second.registered) {
    (void)control(epoll, EPOLL_CTL_ADD, fd, &event);
    note_connection(epoll);
  }
}

void Registrations::forget(int fd) {
  if (Table::in_borrowed_memory()) return;
  const std::lock_guard lock{g_lock};
  is_kept[static_cast<unsigned>(fd)] = false;
  g_sockets.erase(fd);
}

}  // namespace weft::sdp
