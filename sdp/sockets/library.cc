#include "sdp/sockets/library.h"
#include "sdp/sockets/epoll_set.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <exception>
#include <future>
#include <new>

#include "sdp/loop/handlers.h"
#include "sdp/sockets/addresses.h"
#include "sdp/sockets/fallbacks.h"
#include "sdp/sockets/fork_handlers.h"
#include "sdp/sockets/keeper.h"
#include "sdp/sockets/mirror.h"
#include "sdp/sockets/mirror_calls.h"
#include "sdp/sockets/port_map.h"
#include "sdp/sockets/process_rules.h"
#include "sdp/sockets/real.h"
#include "sdp/sockets/recent.h"
#include "sdp/sockets/registrations.h"
#include "sdp/sockets/relayed_names.h"
#include "sdp/sockets/shown_name.h"
#include "sdp/sockets/table.h"
#include "sdp/sockets/written_names.h"

namespace weft::sdp {
namespace {

Mutex g_lock;
std::atomic<Library*> g_library{nullptr};
std::atomic<bool> g_without{false};
Loop* g_loop = nullptr;  // with the lock

// A wake-up connection brings no data, so that a listener with TCP_DEFER_ACCEPT would not be told
// of it. Programs set the option when the library hears already.
void accept_without_data(int listener) {
  const int no_time = 0;
  (void)real().setsockopt(listener, IPPROTO_TCP, TCP_DEFER_ACCEPT, &no_time, sizeof no_time);
}

bool does_not_block(int fd) {
  return (::syscall(SYS_fcntl, fd, F_GETFL, 0) & O_NONBLOCK) != 0;
}

// The child's calls are the kernel's, so the parent moves the bytes from now on.
void relay_everything() {
  Table::relay_all();
}

// fork() leaves a child with neither the thread nor the connections. Their memory is never touched.
void forget_in_child() {
  // Another thread of the parent may have held it.
  new (&g_lock) Mutex;
  g_library = nullptr;
  g_without = false;
  g_loop = nullptr;
  Table::forget_all();
  Recent::forget_in_child();
  EpollSet::forget_in_child();
  Fallbacks::forget_in_child();
  RelayedNames::go_on_in_child();
  Keeper::go_on_in_child();
  Shown::forget_in_child();
}

}  // namespace

Library::Library(Loop& loop, std::unique_ptr<Fabric> fabric)
    : loop_(loop),
      fabric_(std::move(fabric)),
      connecting_(loop, *fabric_),
      accept_queue_(loop, *fabric_),
      connections_(loop, *fabric_) {}

Library* Library::existing() {
  return g_library.load(std::memory_order_acquire);
}

Library* Library::of_caller() {
  Library* library = existing();
  // Nor in a child that has this process's memory only (vfork), or was made behind libc's back.
  if (library == nullptr || library->process_ != ::getpid()) return nullptr;
  return library->loop_.on_this_thread() ? nullptr : library;
}

Library* Library::get() {
  if (Library* library = existing()) return library;
  if (g_without) return nullptr;
  const std::lock_guard lock{g_lock};
  if (Library* library = existing()) return library;
  if (g_loop == nullptr) {
    g_loop = Loop::start(catch_up);
  }
  Loop* loop = g_loop;
  if (loop == nullptr) return nullptr;
  Handlers::guard_memory();
  auto fabric = Fabric::open(*loop, [](const Address& peer, const std::string& why) {
    process_log().write(LogLevel::error,
                        "the connection with " + to_string(peer) + " was ended: " + why);
  });
  if (!fabric) {
    g_without = true;
    return nullptr;
  }
  static const bool registered =
      ForkHandlers::add({.first = relay_everything, .in_child = forget_in_child});
  (void)registered;
  g_library = new Library(*loop, std::move(fabric));  // never destroyed
  return existing();
}

Library::Tried Library::connect(int fd, const Address& to, bool remember) {
  const HoldHandlers holding;
  const Handlers::Ran ran;
  // Nothing of this is for who does not block.
  const Awaited::Patience patience =
      does_not_block(fd) ? Awaited::Patience{} : Awaited::Patience{&ran, limit_of_sends(fd)};
  const uint64_t before = cookie_of(fd);
  const Connecting::Made made = connecting_.make(fd, to, remember, patience);
  if (cookie_of(fd) != before) {
    if (made.session) loop_.post([this, session = made.session] { fabric_->close(session); });
    return {Outcome::lost};
  }
  if (made.left != 0) return {Outcome::left, made.why, made.left};
  const auto& session = made.session;
  if (session == nullptr) return {Outcome::tcp, made.why};
  try {
    return put_in_place_of(fd, to, made);
  } catch (const std::bad_alloc&) {
    const std::lock_guard lock{session->lock};
    session->abandon();
    throw;
  }
}

// `fd` is the connection that was made for it from now on.
Library::Tried Library::put_in_place_of(int fd, const Address& to, const Connecting::Made& made) {
  const auto& session = made.session;
  Mirror mirror;
  const auto registered = Registrations::take_out(fd);
  const bool placed = mirror.put_at(fd);
  Registrations::put_back(fd);
  if (!placed) {
    loop_.post([this, session] { fabric_->close(session); });
    return {Outcome::tcp, Fallback::local};
  }
  Registrations::end(fd);
  const bool in_progress = does_not_block(fd);
  const auto stream = connections_.adopt(session, std::move(mirror), fd, made.own, to, in_progress);
  if (!registered.empty()) stream->waiting().about_to_wait(fd);
  for (const auto& [epoll, event] : registered) {
    stream->waiting().registered(epoll, EPOLL_CTL_ADD, fd, &event);
  }
  stream->waiting().take_owner(fd);
  stream->greet();
  return {in_progress ? Outcome::in_progress : Outcome::connected};
}

Library::Kept Library::connect_and_keep(File socket, const Address& to, bool remember) {
  const HoldHandlers holding;
  const Connecting::Made made = connecting_.make(socket.get(), to, remember, {});
  const auto& session = made.session;
  if (session == nullptr) return {File{}, made.why};
  SocketPair pair;
  if (!pair.open()) {
    loop_.post([this, session] { fabric_->close(session); });
    return {File{}, Fallback::local};
  }
  write_names(pair.outer.get(), {made.own, to});
  {
    const std::lock_guard lock{session->lock};
    session->show({.server = false, .own = shown_name(made.own), .peer = shown_name(to)});
    session->relayed();
    session->greet();
  }
  on_loop([&] {
    const auto kept = kept_.insert(kept_.end(), KeptRelay{});
    kept->socket = std::move(socket);
    kept->relay = std::make_unique<Relay>(loop_, *fabric_, session, std::move(pair.inner),
                                          kept->socket.get(), Loop::ready([this, kept] {
                                            kept_.erase(kept);
                                            count_kept_ = kept_.size();
                                          }));
    count_kept_ = kept_.size();
    kept->relay->start();
  });
  return {std::move(pair.outer)};
}

Library::Hearing* Library::listen(int fd, int backlog) {
  const auto name = name_of(fd);
  const auto port = name ? sdp_port(name->port()) : std::nullopt;
  if (!port) {
    errno = EADDRNOTAVAIL;
    return nullptr;
  }
  Address at = *name;
  at.set_port(*port);
  const bool one_family = is_one_family(fd);
  if (!is_free(at, one_family)) return nullptr;
  const auto receive_bytes = [fd, cookie = cookie_of(fd)] {
    // The number may be another socket's by then.
    return cookie_of(fd) == cookie ? chosen_buffer_sizes(fd).receive : 0;
  };
  const auto accepted = [this, fd, cookie = cookie_of(fd), name = *name](
                            const std::shared_ptr<Session>& session, const Address& peer) {
    if (cookie_of(fd) == cookie) accept_without_data(fd);
    accept_queue_.await_greeting(session, peer, name);
  };
  Hearing* hearing = nullptr;
  int error = 0;  // the loop's thread has an errno of its own
  on_loop([&] {
    hearing = fabric_->listen(at, one_family, backlog, receive_bytes, accepted);
    error = errno;
  });
  errno = error;
  return hearing;
}

void Library::stop_listening(Hearing* hearing) {
  on_loop([&] { fabric_->forget(hearing); });
}

void Library::catch_up() {
  if (const Library* library = existing()) library->fabric_->catch_up();
  process_log().write(LogLevel::error, "there was no memory for what was to be done");
}

void Library::later(int milliseconds, Loop::Task task) {
  loop_.post([this, milliseconds, task = std::move(task)] { loop_.later(milliseconds, task); });
}

// Waits until the loop's thread has done it.
void Library::on_loop(const Loop::Task& task) {
  if (loop_.on_this_thread()) return task();
  std::promise<void> done;
  loop_.post([&] {
    try {
      task();
      done.set_value();
    } catch (const std::bad_alloc&) {
      done.set_exception(std::current_exception());
    }
  });
  done.get_future().get();
}

std::optional<Address> Library::accepted(int fd) {
  Address from{};
  socklen_t size = sizeof from;
  if (real().getpeername(fd, &from.any, &size) != 0) return std::nullopt;
  // A handler that jumps out between the two would leave a connection that nobody has.
  const HoldHandlers holding;
  auto taken = accept_queue_.take(fd, from);
  if (!taken) return std::nullopt;
  if (taken->session) {
    connections_.adopt(taken->session, std::move(taken->mirror), fd, std::nullopt, taken->peer,
                       false);
  }
  return taken->peer;
}

bool Library::drained() const {
  return !connections_.any() && count_kept_ == 0 && fabric_->sending() == 0;
}

bool Library::all_sent() {
  bool all = false;
  on_loop([&] { all = !connections_.any_ends() && fabric_->all_sent(); });
  return all;
}

void Library::give_up_unaccepted() {
  loop_.post([this] { accept_queue_.give_up_all(); });
}

}  // namespace weft::sdp
