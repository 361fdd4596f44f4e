#include "abi/rsockets/stream.h"

#include <netinet/in.h>
#include <netinet/tcp.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace weft::rsockets {
namespace {

// The first message of a send is small, so that both sides copy at the same time.
constexpr uint32_t kFirstMessage = 4096;
constexpr uint32_t kLargestMessage = 1 << 16;

// What may be sent at once, or why nothing ever may.
struct RoomNow {
  uint32_t bytes;
  int error;
};

}  // namespace

int Stream::bind(const sockaddr* address) {
  const Lock lock = waiting_.lock();
  return link_.bind(address, settings_);
}

int Stream::listen(int backlog) {
  const Lock lock = waiting_.lock();
  return link_.listen(backlog);
}

int Stream::connect(const sockaddr* address) {
  Lock lock = waiting_.lock();
  drive();
  if (link_.has_failed()) {
    const int error = link_.take_error();
    return error != 0 ? error : ENOTCONN;
  }
  if (const int error = link_.connect(address, settings_); error != 0) return error;
  drive();
  if (link_.is_opening() && settings_.nonblocking()) return EINPROGRESS;
  while (link_.is_opening()) {
    if (const int error = waiting_.wait(lock, link_); error != 0) return error;
    drive();
  }
  return link_.has_failed() ? link_.take_error() : 0;
}

int Stream::accept(std::shared_ptr<Stream>& accepted) {
  Lock lock = waiting_.lock();
  if (link_.state() != Link::State::listening) return closed_ ? EBADF : EINVAL;
  for (;;) {
    while (const auto event = link_.next_request()) {
      auto stream = std::make_shared<Stream>(family_);
      stream->settings_ = settings_;
      // A peer that says nothing sensible, or has gone, is not the program's concern.
      if (stream->link_.accept(event->request, event->peer, settings_) != 0) continue;
      accepted = std::move(stream);
      return 0;
    }
    if (settings_.nonblocking()) return EAGAIN;
    if (const int error = waiting_.wait(lock, link_); error != 0) return error;
    if (link_.state() != Link::State::listening) return EBADF;
  }
}

void Stream::drive() {
  if (link_.drive(settings_)) waiting_.announce();
}

int Stream::await_connection(Lock& lock, int flags) {
  drive();
  while (link_.is_opening()) {
    if (!blocks(flags)) return EAGAIN;
    if (const int error = waiting_.wait(lock, link_); error != 0) return error;
    drive();
  }
  if (link_.is_connected()) return 0;
  const int error = link_.take_error();
  return error != 0 ? error : ENOTCONN;
}

template <class Room, class Send>
Stream::Moved Stream::send_pieces(IovCursor& from, int flags, Room room, Send send) {
  Lock lock = waiting_.lock();
  if (const int error = await_connection(lock, flags); error != 0) return {0, error};
  const size_t all = from.left();
  uint32_t most = kFirstMessage;
  int error = 0;
  while (from.left() > 0 && error == 0) {
    const RoomNow r = room();
    if (!writes_) {
      error = EPIPE;
    } else if (r.error != 0) {
      error = r.error;
    } else if (r.bytes > 0) {
      send(static_cast<uint32_t>(std::min<size_t>({r.bytes, most, from.left()})));
      most = std::min(most * 2, kLargestMessage);
      drive();
    } else if (link_.connection().ended()) {
      error = link_.connection().error() != 0 ? link_.connection().error() : ECONNRESET;
    } else if (!blocks(flags)) {
      error = EAGAIN;
    } else {
      error = waiting_.wait(lock, link_);
      drive();
    }
  }
  const size_t sent = all - from.left();
  return {sent, sent > 0 ? 0 : error};
}

Stream::Moved Stream::send(IovCursor from, int flags) {
  if ((flags & MSG_OOB) != 0) return {0, EOPNOTSUPP};
  const auto room = [this] {
    Connection& c = link_.connection();
    return RoomNow{mappings_.tell(c) ? c.sendable() : 0, 0};
  };
  return send_pieces(from, flags, room, [&](uint32_t n) { link_.connection().send(from, n); });
}

Stream::Moved Stream::receive(IovCursor to, int flags) {
  Lock lock = waiting_.lock();
  if ((flags & MSG_OOB) != 0) return {0, EOPNOTSUPP};
  if (const int error = await_connection(lock, flags); error != 0) return {0, error};
  const bool peek = (flags & MSG_PEEK) != 0;
  size_t got = 0;
  int error = 0;
  while (to.left() > 0 && error == 0) {
    if (const uint32_t n = link_.connection().read(to, peek); n > 0) {
      got += n;
      drive();  // the peer has new credits
      if (peek || (flags & MSG_WAITALL) == 0) break;
    } else if (link_.connection().at_end() || !reads_) {
      error = link_.connection().error();
      break;
    } else if (!blocks(flags)) {
      error = EAGAIN;
    } else {
      error = waiting_.wait(lock, link_);
      drive();
    }
  }
  return {got, got > 0 ? 0 : error};
}

template <class Done>
void Stream::wait_until(Lock& lock, const Deadline& until, Done done) {
  drive();
  while (!done()) {
    const int error = waiting_.wait(lock, link_, until);
    if (error != 0 && error != EINTR) return;
    drive();
  }
}

int Stream::shutdown(int how) {
  if (how != SHUT_RD && how != SHUT_WR && how != SHUT_RDWR) return EINVAL;
  Lock lock = waiting_.lock();
  return end_directions(lock, how, {});
}

int Stream::end_directions(Lock& lock, int how, const Deadline& until) {
  drive();
  while (link_.state() == Link::State::accepting) {
    const int error = waiting_.wait(lock, link_, until);
    if (error != 0 && error != EINTR) return error;
    drive();
  }
  if (!link_.is_connected()) return ENOTCONN;
  const bool was_open = reads_ || writes_;
  const bool wrote = writes_;
  if (how != SHUT_WR) reads_ = false;
  if (how != SHUT_RD) writes_ = false;
  if (was_open && !reads_ && !writes_) {
    wait_until(lock, until, [this] { return link_.connection().say_disconnect(); });
  } else if (wrote && !writes_) {
    wait_until(lock, until, [this] { return link_.connection().say_shutdown(); });
  }
  wait_until(lock, until, [this] { return link_.connection().all_sent(); });
  waiting_.announce();
  return 0;
}

void Stream::close() {
  Lock lock = waiting_.lock();
  const auto most = settings_.most_linger();
  // Without time for it, not even the end is said: TCP resets such a connection.
  if (most != std::chrono::seconds{0}) (void)end_directions(lock, SHUT_RDWR, after(most));
  reads_ = writes_ = false;
  closed_ = true;
  link_.end(EBADF);  // for threads that still wait
  waiting_.announce();
}

short Stream::ready_now(short wanted) {
  drive();
  const int ready = link_.ready(reads_, writes_);
  return static_cast<short>(ready & (wanted | POLLERR | POLLHUP));
}

short Stream::ready(short wanted) {
  const Lock lock = waiting_.lock();
  return ready_now(wanted);
}

std::optional<int> Stream::arm(short wanted, Sleeper& sleeper) {
  const Lock lock = waiting_.lock();
  if (ready_now(wanted) != 0) return std::nullopt;
  int fd = link_.fd();
  if (link_.is_connected()) {
    if (link_.connection().endpoint().arm() != 0 || ready_now(wanted) != 0) return std::nullopt;
    fd = link_.connection().endpoint().event_fd();
  }
  waiting_.add(sleeper);
  return fd;
}

void Stream::disarm(const Sleeper& sleeper) {
  const Lock lock = waiting_.lock();
  waiting_.remove(sleeper);
  // Where a thread waits for the event it is that thread's.
  if (waiting_.is_watched() || !link_.is_connected()) return;
  link_.connection().endpoint().drain_events();
  drive();  // another thread in rpoll may have waited for the same event
}

int Stream::local_name(sockaddr* to, socklen_t* size) {
  const Lock lock = waiting_.lock();
  return link_.local_name(to, size);
}

int Stream::peer_name(sockaddr* to, socklen_t* size) {
  const Lock lock = waiting_.lock();
  return link_.peer_name(to, size);
}

int Stream::set_option(int level, int name, const void* value, socklen_t size) {
  const Lock lock = waiting_.lock();
  const Keepalive before = settings_.keepalive();
  if (const int error = settings_.set(level, name, value, size); error != 0) return error;
  return settings_.keepalive() == before ? 0 : link_.take_keepalive(settings_);
}

int Stream::get_option(int level, int name, void* value, socklen_t* size) {
  const Lock lock = waiting_.lock();
  const bool is_info = level == IPPROTO_TCP && name == TCP_INFO;
  if (!is_info && (level != SOL_SOCKET || name != SO_ERROR))
    return settings_.get(level, name, value, size);
  if (value == nullptr || size == nullptr || *size < sizeof(int)) return EINVAL;
  if (is_info) {
    // Whether it is connected, and zero for what only TCP has.
    tcp_info info{};
    info.tcpi_state = link_.is_connected() ? TCP_ESTABLISHED : TCP_CLOSE;
    *size = std::min<socklen_t>(*size, sizeof info);
    std::memcpy(value, &info, *size);
    return 0;
  }
  drive();
  const int error = link_.take_error();
  std::memcpy(value, &error, sizeof error);
  *size = sizeof error;
  return 0;
}

int Stream::map(void* memory, size_t size, bool remote, std::optional<uint64_t> wanted,
                uint64_t& offset) {
  Lock lock = waiting_.lock();
  if (const int error = await_connection(lock, 0); error != 0) return error;
  const int error = mappings_.add(link_.connection(), memory, size, remote, wanted, offset);
  if (error == 0) (void)mappings_.tell(link_.connection());
  return error;
}

int Stream::unmap(void* memory, size_t size) {
  const Lock lock = waiting_.lock();
  return mappings_.remove(memory, size);
}

Stream::Moved Stream::write_mapped(IovCursor from, uint64_t offset, int flags) {
  Target into;  // of the piece that is next
  const auto room = [&] {
    const auto mapped = link_.connection().find_mapped(offset);
    if (!mapped) return RoomNow{0, EINVAL};
    const auto skipped = static_cast<uint32_t>(offset - mapped->offset);
    into = {mapped->target.address + skipped, mapped->target.key, mapped->target.length - skipped};
    return RoomNow{std::min(link_.connection().mapped_writable(), into.length), 0};
  };
  return send_pieces(from, flags, room, [&](uint32_t n) {
    link_.connection().write_mapped(from, n, into.address, into.key);
    offset += n;
  });
}

}  // namespace weft::rsockets
