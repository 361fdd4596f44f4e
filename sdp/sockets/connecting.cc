#include "sdp/sockets/connecting.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <new>
#include <optional>

#include "sdp/sockets/addresses.h"
#include "sdp/sockets/mirror.h"
#include "sdp/sockets/port_map.h"
#include "sdp/sockets/real.h"
#include "sdp/sockets/shown_name.h"

namespace weft::sdp {
namespace {

// A peer that does not answer for so long goes on by TCP.
constexpr int kConnectMs = 250;
// One without TCP to go on by fails.
constexpr int kConnectAloneMs = 10'000;
// A thread that has not taken its connection by then was jumped out of its call.
constexpr int kTakenMs = 10'000;

Fallback why(int error) {
  switch (error) {
    case ECONNREFUSED:
      return Fallback::refused;
    case ETIMEDOUT:
      return Fallback::silent;
    case EPROTO:
      return Fallback::stranger;
    case EHOSTUNREACH:
    case ENETUNREACH:
    case ENODEV:
      return Fallback::unreachable;
    default:
      return Fallback::local;
  }
}

// Reserves a port for a client that has none, so that it has a name, as a connected socket has.
std::optional<Address> bound_name(int fd) {
  auto name = name_of(fd);
  if (!name || name->port() != 0) return name;
  // It may be bound to an address, and wait for connect() for its port.
  const int no = 0;
  int waits = 0;
  socklen_t size = sizeof waits;
  (void)real().getsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &waits, &size);
  if (waits != 0) (void)real().setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &no, sizeof no);
  const bool bound = ::bind(fd, &name->any, name->size()) == 0;
  if (waits != 0) {
    (void)real().setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &waits, sizeof waits);
  }
  return bound ? name_of(fd) : std::nullopt;
}

}  // namespace

Connecting::Made Connecting::make(int fd, const Address& to, bool remember,
                                  const Awaited::Patience& patience) {
  const auto port = sdp_port(to.port());
  if (!port) return {.why = Fallback::no_port};
  const StatName place = shown_name(to);
  if (remember && absent_.knows(place, Absent::Clock::now())) {
    return {.why = Fallback::remembered};
  }
  const auto from = bound_name(fd);
  if (!from) return {.why = Fallback::local};
  Address target = to;
  target.set_port(*port);
  const auto awaited = std::make_shared<Awaited>();
  const Fabric::ConnectOptions options{.milliseconds = remember ? kConnectMs : kConnectAloneMs,
                                       .receive_bytes = chosen_buffer_sizes(fd).receive,
                                       .no_fallback = !remember};
  loop_.post([this, awaited, source = *from, target, options] {
    const auto done = [this, awaited](const std::shared_ptr<Session>& session, int error) {
      const bool waits = awaited->put(session, error);
      if (session == nullptr) return;
      if (!waits) return fabric_.close(session);
      close_unless_taken(awaited, session);
    };
    try {
      fabric_.connect(source, target, options, done);
    } catch (const std::bad_alloc&) {
      (void)awaited->put(nullptr, ENOMEM);
    }
  });
  const auto [made, error] = awaited->take(patience);
  if (error == EINTR || error == EINPROGRESS) return {.why = Fallback::silent, .left = error};
  if (made == nullptr) {
    absent_.note(place, why(error), Absent::Clock::now());
    return {.why = why(error)};
  }
  absent_.forget(place);
  Address own = in_family(own_address(made), to.any.sa_family);
  own.set_port(from->port());
  return {.session = made, .own = own};
}

void Connecting::close_unless_taken(const std::shared_ptr<Awaited>& awaited,
                                    const std::weak_ptr<Session>& session) {
  loop_.later(kTakenMs, [this, awaited, session] {
    const auto still = session.lock();
    if (awaited->give_up() && still) fabric_.close(still);
  });
}

}  // namespace weft::sdp
