// socket(2), connect(2), listen(2) and accept(2).
#include <fcntl.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string>

#include "base/guarded.h"
#include "sdp/loop/handlers.h"
#include "sdp/preload/caller.h"
#include "sdp/preload/memory.h"
#include "sdp/preload/next.h"
#include "sdp/sockets/addresses.h"
#include "sdp/sockets/decide.h"
#include "sdp/sockets/fallbacks.h"
#include "sdp/sockets/handover.h"
#include "sdp/sockets/keeper.h"
#include "sdp/sockets/library.h"
#include "sdp/sockets/listeners.h"
#include "sdp/sockets/mirror.h"
#include "sdp/sockets/process_rules.h"
#include "sdp/sockets/real.h"
#include "sdp/sockets/registrations.h"
#include "sdp/sockets/relayed_names.h"
#include "sdp/sockets/shown_name.h"
#include "sdp/sockets/table.h"

using namespace weft::sdp;
using weft::copy_guarded;
using weft::readable_guarded;

namespace {

// At most `room` bytes of the name; `size` tells how long it is.
void put_name(const Address& from, sockaddr* to, socklen_t room, socklen_t* size) {
  if (to == nullptr || size == nullptr) return;
  const socklen_t whole = from.size();
  (void)copy_guarded(to, &from, std::min(room, whole));
  (void)copy_guarded(size, &whole, sizeof whole);
}

void tell(const char* what, const Address& peer, const std::string& more) {
  process_log().write(LogLevel::summary, what + to_string(peer) + more);
}

bool tells_ways() {
  return process_log().wants(LogLevel::summary);
}

// A connection that somebody without SDP has made.
void came_by_tcp(int fd) {
  Address peer{};
  socklen_t size = sizeof peer;
  if (real().getpeername(fd, &peer.any, &size) != 0) return;
  if (peer.any.sa_family != AF_INET && peer.any.sa_family != AF_INET6) return;
  Fallbacks::add(fd, peer, true, Fallback::peer);
  if (tells_ways()) tell("accept from ", peer, ": TCP");
}

// The peer of a connection that came by SDP, which takes the place of the wake-up connection
// `fd`.
std::optional<Address> take_pending(int fd) {
  Library* library = Library::existing();
  if (library != nullptr) {
    if (const auto peer = library->accepted(fd)) return peer;
  }
  const auto answer = Handover::ask(fd);
  if (!answer) return std::nullopt;
  const bool placed = answer->connection && put_in_place(answer->connection, fd);
  if (!placed) RelayedNames::add(fd, answer->peer);
  return answer->peer;
}

// The connection by SDP takes the place of a wake-up connection. False for a connection that the
// rules refuse.
bool take_accepted(int listener, int fd, sockaddr* address, socklen_t room, socklen_t* size) {
  if (Table::in_borrowed_memory()) return true;
  if (const auto peer = take_pending(fd)) {
    // The kernel has put the length of the wake-up connection's name into `size`, which may be more
    // than the caller has room for.
    put_name(*peer, address, room, size);
    if (tells_ways()) tell("accept from ", *peer, ": SDP");
    return true;
  }
  if (Listeners::refuses(listener, fd)) return false;
  came_by_tcp(fd);
  return true;
}

void reset(int fd) {
  const linger at_once{1, 0};
  (void)real().setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  (void)File{fd};
}

// `accept_one` is libc's. Goes on behind what is refused.
template <class Accept>
int accept_allowed(int listener, sockaddr* address, socklen_t* size, Accept accept_one) {
  (void)if_memory([listener] { Listeners::about_to_wait(listener); });
  socklen_t room = 0;
  bool named = false;
  if (size != nullptr) {  // most callers ask for no name
    guard_memory();
    named = copy_guarded(&room, size, sizeof room);
  }
  for (;;) {
    const int fd = accept_one();
    if (fd < 0) return fd;
    const int error = errno;
    // Else a connection would be lost to a jump, or to a cancellation.
    const HoldHandlers hold;
    bool taken = false;
    const bool known = if_memory([&] { taken = take_accepted(listener, fd, address, room, size); });
    if (!taken) reset(fd);
    errno = known ? error : ENOMEM;
    if (taken || !known) return taken ? fd : -1;
    if (named) (void)copy_guarded(size, &room, sizeof room);
  }
}

// What the library comes to for a socket that may go by SDP.
Library::Tried try_sdp(Use use, int fd, const Address& to) {
  if (use == Use::tcp) return {Library::Outcome::tcp, Fallback::rules};
  if (Registrations::has_copies(fd)) return {Library::Outcome::tcp, Fallback::copied};
  if (process_rules().configuration.keeps(program_invocation_short_name)) {
    if (const auto kept = Keeper::connect(fd, to, use == Use::both)) return *kept;
  }
  Library* library = Library::get();
  if (library == nullptr) return {Library::Outcome::tcp, Fallback::no_adapter};
  return library->connect(fd, to, use == Use::both);
}

// The call ends with `error`, and the attempt goes on by TCP, as with one of the kernel's.
int go_on_without_waiting(int fd, const sockaddr* to, socklen_t size, int error) {
  const long flags = ::syscall(SYS_fcntl, fd, F_GETFL, 0);
  (void)::syscall(SYS_fcntl, fd, F_SETFL, flags | O_NONBLOCK);
  const int status = real().connect(fd, to, size);
  const int why = errno;
  (void)::syscall(SYS_fcntl, fd, F_SETFL, flags);
  errno = status != 0 && why != EINPROGRESS ? why : error;
  return status;
}

int connect_for_program(int fd, const sockaddr* to, socklen_t size) {
  ::pthread_testcancel();
  const int error = errno;
  // Of a name that is not there the kernel says so.
  guard_memory();
  if (size > sizeof(sockaddr_storage) || !readable_guarded(to, size)) {
    return real().connect(fd, to, size);
  }
  if (Library* library = Library::existing()) {
    // It ends, and the socket is as it was before.
    if (size >= sizeof to->sa_family && to->sa_family == AF_UNSPEC && library->disconnect(fd)) {
      return real().connect(fd, to, size);
    }
    if (const auto again = library->connect_again(fd)) {
      if (*again != 0) errno = *again;
      return *again == 0 ? 0 : -1;
    }
  }
  const auto use = use_to_connect(fd, to, size);
  if (!use) {
    errno = error;
    return real().connect(fd, to, size);
  }
  Address target{};
  std::memcpy(&target, to, std::min<size_t>(size, sizeof target));
  if (any_address(target)) target = this_host(target, name_of(fd));
  const Library::Tried tried = try_sdp(*use, fd, target);
  if (tried.outcome == Library::Outcome::lost) {
    errno = EBADF;
    return -1;
  }
  const bool left = tried.outcome == Library::Outcome::left;
  const bool by_tcp = tried.outcome == Library::Outcome::tcp || left;
  const bool refused = by_tcp && *use == Use::sdp;
  if (tells_ways()) {
    const std::string reason = by_tcp ? std::string{", for "} + text(tried.why) : "";
    const char* way = refused ? ": refused" : by_tcp ? ": TCP" : ": SDP";
    tell("connect to ", target, way + reason);
  }
  if (refused) {
    // Nothing goes on that the program could be told of later.
    errno = !left ? ECONNREFUSED : tried.error == EINPROGRESS ? ETIMEDOUT : tried.error;
    return -1;
  }
  if (by_tcp) {
    errno = error;
    const int status =
        left ? go_on_without_waiting(fd, to, size, tried.error) : real().connect(fd, to, size);
    // It has its own name now.
    const int after = errno;
    Fallbacks::add(fd, target, false, tried.why);
    const bool goes_on = status == 0 || left || after == EINPROGRESS || after == EINTR;
    if (!goes_on) Fallbacks::drop(fd);
    errno = after;
    return status;
  }
  const bool done = tried.outcome == Library::Outcome::connected;
  errno = done ? error : EINPROGRESS;
  return done ? 0 : -1;
}

}  // namespace

WEFT_SDP_EXPORT int socket(int family, int type, int protocol) noexcept {
  const int fd = WEFT_SDP_NEXT(socket)(family, type, protocol);
  const int kind = type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC);
  const bool tcp = (family == AF_INET || family == AF_INET6) && kind == SOCK_STREAM;
  if (fd < 0 || !tcp || !WEFT_SDP_FOR_PROGRAM) return fd;
  if (if_memory([fd] { Registrations::begin(fd); })) return fd;
  (void)File{fd};
  errno = ENOMEM;
  return -1;
}

WEFT_SDP_EXPORT int connect(int fd, const sockaddr* to, socklen_t size) {
  if (!WEFT_SDP_FOR_PROGRAM) return real().connect(fd, to, size);
  return or_no_memory([=] { return connect_for_program(fd, to, size); });
}

WEFT_SDP_EXPORT int listen(int fd, int backlog) {
  const int status = real().listen(fd, backlog);
  if (status != 0 || !WEFT_SDP_FOR_PROGRAM) return status;
  return or_no_memory([=] {
    Listeners::add(fd, backlog);
    return 0;
  });
}

WEFT_SDP_EXPORT int accept(int fd, sockaddr* address, socklen_t* size) {
  if (!WEFT_SDP_FOR_PROGRAM) return real().accept(fd, address, size);
  return accept_allowed(fd, address, size, [=] { return real().accept(fd, address, size); });
}

WEFT_SDP_EXPORT int accept4(int fd, sockaddr* address, socklen_t* size, int flags) {
  if (!WEFT_SDP_FOR_PROGRAM) return real().accept4(fd, address, size, flags);
  return accept_allowed(fd, address, size,
                        [=] { return real().accept4(fd, address, size, flags); });
}
