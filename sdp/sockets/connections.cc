#include "sdp/sockets/connections.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <new>
#include <utility>

#include "sdp/sockets/addresses.h"
#include "sdp/sockets/shown_name.h"
#include "sdp/sockets/table.h"
#include "sdp/sockets/written_names.h"

namespace weft::sdp {

std::shared_ptr<Stream> Connections::adopt(const std::shared_ptr<Session>& session, Mirror mirror,
                                           int fd, const std::optional<Address>& own,
                                           const Address& peer, bool in_progress) {
  try {
    return add(session, std::move(mirror), fd, own, peer, in_progress);
  } catch (const std::bad_alloc&) {
    const std::lock_guard lock{session->lock};
    session->abandon();
    throw;
  }
}

std::shared_ptr<Stream> Connections::add(const std::shared_ptr<Session>& session, Mirror mirror,
                                         int fd, const std::optional<Address>& own,
                                         const Address& peer, bool in_progress) {
  const std::lock_guard lock{lock_};
  const uint64_t cookie = mirror.cookie;
  const auto name = own ? own : name_of(mirror.shadow.get());
  if (name) write_names(fd, {*name, peer});
  {
    const std::lock_guard showing{session->lock};
    session->show(
        {.server = !own, .own = name ? shown_name(*name) : StatName{}, .peer = shown_name(peer)});
  }
  auto stream = Stream::make(loop_, fabric_, session, std::move(mirror.inner), mirror.shadow,
                             cookie, [this, cookie] { forget(cookie); });
  if (name) introduce(stream, *name, peer);
  Loop::Ready start = Loop::ready([stream] { stream->start(); });
  connections_.emplace(cookie,
                       Connection{stream, std::move(mirror.shadow), own, peer, in_progress});
  ++count_;
  try {
    if (own) callers_.emplace(own->port(), cookie);
    stream->take_buffer_sizes();
    stream->sending().take_zero_copy();
    stream->urgent().take_in_line();
    stream->receiving().take_low_water(fd);
    Table::put(fd, stream);
  } catch (const std::bad_alloc&) {
    (void)take_out(cookie);
    throw;
  }
  // Another thread may have closed it before the table had it.
  if (cookie_of(fd) != cookie) Table::drop(fd);
  loop_.post(std::move(start));
  return stream;
}

// With the lock: the two ends of a connection that this process has with itself to each other.
void Connections::introduce(const std::shared_ptr<Stream>& stream, const Address& own,
                            const Address& peer) {
  const auto same = [](const Address& a, const Address& b) {
    return a.port() == b.port() && same_address(a, b);
  };
  const auto [first, end] = callers_.equal_range(peer.port());
  for (auto i = first; i != end; ++i) {
    const Connection& other = connections_.at(i->second);
    if (!same(*other.own, peer) || !same(other.peer, own)) continue;
    stream->is_peer_of(other.stream);
    other.stream->is_peer_of(stream);
  }
}

void Connections::forget(uint64_t cookie) {
  std::optional<Connection> ended;
  const std::lock_guard lock{lock_};
  ended = take_out(cookie);
}

// With the lock.
std::optional<Connections::Connection> Connections::take_out(uint64_t cookie) {
  const auto found = connections_.find(cookie);
  if (found == connections_.end()) return std::nullopt;
  std::optional<Connection> ended{std::move(found->second)};
  Table::drop(*ended->stream);
  connections_.erase(found);
  if (ended->own) {
    const auto [first, end] = callers_.equal_range(ended->own->port());
    const auto own = std::find_if(first, end, [&](const auto& i) { return i.second == cookie; });
    if (own != end) callers_.erase(own);
  }
  --count_;
  return ended;
}

bool Connections::any_ends() const {
  const std::lock_guard lock{lock_};
  return std::any_of(connections_.begin(), connections_.end(),
                     [](const auto& i) { return i.second.stream->ends(); });
}

std::optional<int> Connections::connect_again(int fd) {
  const uint64_t cookie = cookie_of(fd);
  const std::lock_guard lock{lock_};
  const auto found = connections_.find(cookie);
  if (found == connections_.end()) return std::nullopt;
  return std::exchange(found->second.in_progress, false) ? 0 : EISCONN;
}

bool Connections::disconnect(int fd) {
  const auto stream = Table::find(fd);
  const auto known = names(fd);
  if (!stream || !known) return false;
  stream->reset();
  const File shadow{static_cast<int>(::syscall(SYS_fcntl, known->shadow, F_DUPFD_CLOEXEC, 0))};
  if (!put_in_place(shadow, fd)) return false;
  Table::drop(fd);
  return true;
}

std::optional<Names> Connections::names(int fd) const {
  const uint64_t cookie = cookie_of(fd);
  if (cookie == 0) return std::nullopt;
  const std::lock_guard lock{lock_};
  const auto found = connections_.find(cookie);
  if (found == connections_.end()) return std::nullopt;
  const Connection& c = found->second;
  return Names{c.shadow.get(), c.own, c.peer};
}

}  // namespace weft::sdp
