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
// Never destroyed: programs close descriptors while they end.
using Sockets = std::map<int, Registrations::OfSocket>;
Sockets& g_sockets = *new Sockets;

bool control(int epoll, int operation, int fd, epoll_event* event) {
  return ::syscall(SYS_epoll_ctl, epoll, operation, fd, event) == 0;
}

}  // namespace

void Registrations::keep_over_forks() {
  const auto lock = [] { g_lock.lock(); };
  const auto unlock = [] { g_lock.unlock(); };
  (void)::pthread_atfork(lock, unlock, unlock);
}

void Registrations::begin(int fd) {
  if (static_cast<unsigned>(fd) >= kMost || Table::in_borrowed_memory()) return;
  const std::lock_guard lock{g_lock};
  g_sockets[fd].clear();
  is_kept[static_cast<unsigned>(fd)] = true;
}

void Registrations::note_kept(int epoll, int operation, int fd, const epoll_event* event) {
  const std::lock_guard lock{g_lock};
  OfSocket& all = g_sockets[fd];
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
  std::erase_if(found->second, [fd](const auto& registered) {
    return !control(registered.first, EPOLL_CTL_DEL, fd, nullptr);
  });
  return found->second;
}

void Registrations::put_back(int fd) {
  const std::lock_guard lock{g_lock};
  const auto found = g_sockets.find(fd);
  if (found == g_sockets.end()) return;
  for (auto& [epoll, event] : found->second) {
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
