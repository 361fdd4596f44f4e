#include "sdp/sockets/listeners.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/kept_errno.h"
#include "sdp/loop/handlers.h"
#include "sdp/sockets/addresses.h"
#include "sdp/sockets/decide.h"
#include "sdp/sockets/fork_handlers.h"
#include "sdp/sockets/library.h"
#include "sdp/sockets/mirror.h"
#include "sdp/sockets/port_map.h"
#include "sdp/sockets/process_rules.h"
#include "sdp/sockets/real.h"
#include "sdp/sockets/shown_name.h"
#include "sdp/sockets/table.h"

namespace weft::sdp {
namespace {

constexpr int kTryAgainMs = 1000;

struct Listener {
  unsigned long long cookie = 0;
  int backlog = 0;
  Use use = Use::tcp;
  bool fresh = true;  // this process has not waited for it
  Library::Hearing* hearing = nullptr;
};
Mutex g_lock;
// Never destroyed: programs close descriptors while they end.
std::map<int, Listener>& g_listeners = *new std::map<int, Listener>;

std::string name_of_listener(int fd) {
  Address own{};
  socklen_t size = sizeof own;
  return real().getsockname(fd, &own.any, &size) == 0 ? to_string(own) : "?";
}

// Why SDP is not heard, by errno of what was tried.
std::string reason_of(int fd, bool has_adapter, int error) {
  if (!has_adapter) return "this host has no adapter";
  const auto name = name_of(fd);
  const auto port = name ? sdp_port(name->port()) : std::nullopt;
  if (!port) return "no port of SDP stands beside this one";
  return "its port of SDP, " + std::to_string(*port) + ", cannot be had yet (" +
         std::strerror(error) + ")";
}

std::string ways_of(int fd, Use use, bool has_adapter, bool hears_sdp, int error) {
  if (hears_sdp) return use == Use::sdp ? ": SDP" : ": SDP and TCP";
  const std::string reason =
      ", for " + (use == Use::tcp ? "the rules say so" : reason_of(fd, has_adapter, error));
  return (use == Use::sdp ? ": nothing" : ": TCP") + reason;
}

bool is_one_host(int fd) {
  Address own{};
  Address peer{};
  socklen_t size = sizeof own;
  socklen_t peer_size = sizeof peer;
  return real().getsockname(fd, &own.any, &size) == 0 &&
         real().getpeername(fd, &peer.any, &peer_size) == 0 &&
         shown_name(own).address == shown_name(peer).address;
}

// With the lock: the listener, if it is still there and hears no SDP.
Listener* without_sdp(int fd, unsigned long long cookie) {
  const auto found = g_listeners.find(fd);
  const bool is = found != g_listeners.end() && found->second.cookie == cookie &&
                  found->second.use != Use::tcp && found->second.hearing == nullptr;
  return is ? &found->second : nullptr;
}

Library::Hearing* hear(int fd, int backlog, Use use) {
  const SameErrno same;
  Library* library = use != Use::tcp ? Library::get() : nullptr;
  Library::Hearing* hearing = library != nullptr ? library->listen(fd, backlog) : nullptr;
  if (process_log().wants(LogLevel::summary)) {
    const std::string ways = ways_of(fd, use, library != nullptr, hearing != nullptr, errno);
    process_log().write(LogLevel::summary, "listen at " + name_of_listener(fd) + ways);
  }
  return hearing;
}

}  // namespace

void Listeners::add(int fd, int backlog) {
  if (Table::in_borrowed_memory()) return;
  static const bool registered =
      ForkHandlers::add({.first = before_fork, .in_child = forget_in_child});
  (void)registered;
  const unsigned long long cookie = cookie_of(fd);
  {
    const std::lock_guard lock{g_lock};
    const auto found = g_listeners.find(fd);
    // listen() again changes the backlog alone.
    if (found != g_listeners.end() && found->second.cookie == cookie) return;
  }
  drop(fd);
  const Use use = use_to_listen(fd).value_or(Use::tcp);
  Library::Hearing* hearing = hear(fd, backlog, use);
  const std::lock_guard lock{g_lock};
  g_listeners[fd] = {cookie, backlog, use, true, hearing};
  __atomic_add_fetch(&count, 1, __ATOMIC_RELAXED);
  __atomic_add_fetch(&fresh_count, 1, __ATOMIC_RELAXED);
}

void Listeners::begin(int fd) {
  Listener listener;
  {
    const std::lock_guard lock{g_lock};
    const auto found = g_listeners.find(fd);
    if (found == g_listeners.end() || !found->second.fresh) return;
    found->second.fresh = false;
    __atomic_sub_fetch(&fresh_count, 1, __ATOMIC_RELAXED);
    listener = found->second;
  }
  // The number may be another socket's by now.
  if (cookie_of(fd) != listener.cookie) return drop(fd);
  if (listener.hearing != nullptr) return;
  Library::Hearing* hearing = hear(fd, listener.backlog, listener.use);
  if (hearing == nullptr) return try_again_later(fd, listener.cookie);
  keep_or_stop(fd, listener.cookie, hearing);
}

// Another thread may have closed the listener meanwhile, or begun to hear for it: then the one that
// is heard now would take connections for ever.
void Listeners::keep_or_stop(int fd, unsigned long long cookie, Library::Hearing* hearing) {
  {
    const std::lock_guard lock{g_lock};
    if (Listener* listener = without_sdp(fd, cookie)) {
      listener->hearing = hearing;
      return;
    }
  }
  Library::existing()->stop_listening(hearing);
}

// Another socket may have the port of SDP for a while, often another worker of the same server.
void Listeners::try_again_later(int fd, unsigned long long cookie) {
  Library* library = Library::existing();
  if (library != nullptr) library->later(kTryAgainMs, [=] { try_again(fd, cookie); });
}

// The loop's thread.
void Listeners::try_again(int fd, unsigned long long cookie) {
  int backlog = 0;
  {
    const std::lock_guard lock{g_lock};
    const Listener* listener = without_sdp(fd, cookie);
    if (listener == nullptr) return;
    backlog = listener->backlog;
  }
  Library* library = Library::existing();
  Library::Hearing* hearing = library->listen(fd, backlog);
  if (hearing == nullptr) return try_again_later(fd, cookie);
  if (process_log().wants(LogLevel::summary)) {
    process_log().write(LogLevel::summary, "listen at " + name_of_listener(fd) + ": SDP as well");
  }
  keep_or_stop(fd, cookie, hearing);
}

bool Listeners::refuses(int fd, int accepted) {
  if (count == 0) return false;
  const std::lock_guard lock{g_lock};
  const auto found = g_listeners.find(fd);
  if (found == g_listeners.end() || found->second.use != Use::sdp) return false;
  return found->second.hearing != nullptr || !is_one_host(accepted);
}

void Listeners::drop(int fd) {
  if (count == 0 || Table::in_borrowed_memory()) return;
  Library::Hearing* hearing = nullptr;
  bool may_be_tried = false;
  {
    const std::lock_guard lock{g_lock};
    const auto found = g_listeners.find(fd);
    if (found == g_listeners.end()) return;
    hearing = found->second.hearing;
    may_be_tried = hearing == nullptr && found->second.use != Use::tcp;
    if (found->second.fresh) __atomic_sub_fetch(&fresh_count, 1, __ATOMIC_RELAXED);
    g_listeners.erase(found);
    __atomic_sub_fetch(&count, 1, __ATOMIC_RELAXED);
  }
  Library* library = Library::existing();
  if (library == nullptr) return;
  if (hearing != nullptr) library->stop_listening(hearing);
  // try_again() may hear for it just now, and stops when it sees that it is gone: nobody is to be
  // taken behind the close.
  if (may_be_tried) library->await_loop();
}

void Listeners::drop_range(unsigned first, unsigned last) {
  if (count == 0 || Table::in_borrowed_memory()) return;
  std::vector<int> dropped;
  {
    const std::lock_guard lock{g_lock};
    for (const auto& [fd, listener] : g_listeners) {
      const auto number = static_cast<unsigned>(fd);
      if (first <= number && number <= last) dropped.push_back(fd);
    }
  }
  for (const int fd : dropped) drop(fd);
}

// A process that has not waited for its listener leaves it to its child: it is a parent of workers,
// or on its way to the background.
void Listeners::before_fork() {
  Library* library = Library::existing();
  if (library == nullptr) return;
  std::vector<Library::Hearing*> left;
  {
    const std::lock_guard lock{g_lock};
    for (auto& [fd, listener] : g_listeners) {
      if (!listener.fresh || listener.hearing == nullptr) continue;
      left.push_back(std::exchange(listener.hearing, nullptr));
    }
  }
  for (Library::Hearing* hearing : left) library->stop_listening(hearing);
}

void Listeners::forget_in_child() {
  new (&g_lock) Mutex;
  fresh_count = 0;
  for (auto& [fd, listener] : g_listeners) {
    listener.fresh = true;
    listener.hearing = nullptr;
    ++fresh_count;
  }
}

}  // namespace weft::sdp
