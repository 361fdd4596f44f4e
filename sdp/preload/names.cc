// Names and options: a connection's are those of the TCP socket that it stands for.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <optional>

#include "base/guarded.h"
#include "base/kept_errno.h"
#include "sdp/preload/caller.h"
#include "sdp/preload/memory.h"
#include "sdp/preload/names.h"
#include "sdp/sockets/library.h"
#include "sdp/sockets/path.h"
#include "sdp/sockets/real.h"
#include "sdp/sockets/relayed_names.h"
#include "sdp/sockets/stream.h"
#include "sdp/sockets/table.h"
#include "sdp/sockets/written_names.h"

using namespace weft::sdp;
using weft::copy_guarded;
using weft::SameErrno;

namespace {

std::optional<Names> names_of(int fd) {
  Library* library = Library::existing();
  if (library == nullptr || !library->has_connections()) return std::nullopt;
  const SameErrno same;
  return library->names(fd);
}

int failed(int error) {
  errno = error;
  return -1;
}

// `n` bytes to memory of the program's, which is to be told of `told`.
int put_bytes(const void* from, socklen_t n, void* to, socklen_t told, socklen_t* size) {
  const bool good = copy_guarded(to, from, n) && copy_guarded(size, &told, sizeof told);
  return good ? 0 : failed(EFAULT);
}

// How much room the program says that it has.
std::optional<socklen_t> room_of(const socklen_t* size) {
  int room = 0;
  if (!copy_guarded(&room, size, sizeof room) || room < 0) {
    errno = room < 0 ? EINVAL : EFAULT;
    return std::nullopt;
  }
  return static_cast<socklen_t>(room);
}

int put(const Address& from, sockaddr* to, socklen_t* size) {
  const auto room = room_of(size);
  return room ? put_bytes(&from, std::min(*room, from.size()), to, from.size(), size) : -1;
}

// SO_PEERNAME: all that is asked for has to be there.
int put_peer(const Address& peer, void* to, socklen_t* size) {
  const auto room = room_of(size);
  if (!room) return -1;
  return *room <= peer.size() ? put_bytes(&peer, *room, to, *room, size) : failed(EINVAL);
}

int put_option(int option, void* value, socklen_t* size) {
  const auto room = room_of(size);
  if (!room) return -1;
  const auto n = std::min<socklen_t>(*room, sizeof option);
  return put_bytes(&option, n, value, n, size);
}

// Of the descriptor itself, since the program waits on it; of the shadow are all others.
bool of_descriptor(int level, int name) {
  if (level != SOL_SOCKET) return false;
  switch (name) {
    case SO_RCVTIMEO:
    case SO_SNDTIMEO:
    case SO_RCVLOWAT:
    case SO_COOKIE:
      return true;
    default:
      return false;
  }
}

// From how many bytes on sends are read where they lie; of ib_sdp.
constexpr int kZcopyThreshold = 80;  // SDP_ZCOPY_THRESH
constexpr int kLevelOfSdp = 27;      // AF_INET_SDP
constexpr int kLeastThreshold = ZcopyThreshold::kLeast;
constexpr int kMostThreshold = 1 << 20;

bool is_threshold(int level, int name) {
  return (level == IPPROTO_TCP || level == kLevelOfSdp) && name == kZcopyThreshold;
}

bool is_buffer_size(int level, int name) {
  if (level != SOL_SOCKET) return false;
  return name == SO_SNDBUF || name == SO_RCVBUF || name == SO_SNDBUFFORCE || name == SO_RCVBUFFORCE;
}

bool is_keepalive(int level, int name) {
  if (level == SOL_SOCKET) return name == SO_KEEPALIVE;
  return level == IPPROTO_TCP && (name == TCP_KEEPIDLE || name == TCP_KEEPINTVL ||
                                  name == TCP_KEEPCNT || name == TCP_USER_TIMEOUT);
}

int set_threshold(Stream& stream, const void* value, socklen_t size) {
  int bytes = 0;
  if (size >= sizeof bytes && !copy_guarded(&bytes, value, sizeof bytes)) return failed(EFAULT);
  const bool in_range = bytes >= kLeastThreshold && bytes <= kMostThreshold;
  if (size < sizeof bytes || (bytes != -1 && bytes != 0 && !in_range)) return failed(EINVAL);
  stream.sending().set_threshold(bytes == -1 ? ZcopyThreshold::of_process()
                                             : ZcopyThreshold{bytes});
  return 0;
}

int get_threshold(Stream& stream, void* value, socklen_t* size) {
  return put_option(stream.sending().threshold().bytes, value, size);
}

// Of a connection that is relayed the descriptor knows it.
int take_error(int fd, void* value, socklen_t* size) {
  const auto stream = Table::find(fd);
  const auto error = stream ? stream->take_error(fd) : std::nullopt;
  if (!error) return real().getsockopt(fd, SOL_SOCKET, SO_ERROR, value, size);
  return put_option(*error, value, size);
}

File tcp_socket_like(const WrittenNames& names) {
  return File{::socket(names.own.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0)};
}

// A connection that came from another process has no shadow here. What only TCP sockets know is
// asked of a new one, so that what is set has no effect, and what is asked is as it was at first.
std::optional<WrittenNames> names_in_place_of(int fd, int level, int name) {
  const bool of_tcp = level == IPPROTO_TCP || level == IPPROTO_IP || level == IPPROTO_IPV6;
  const bool of_kind = level == SOL_SOCKET && (name == SO_DOMAIN || name == SO_PROTOCOL);
  return of_tcp || of_kind ? written_names(fd) : std::nullopt;
}

}  // namespace

InPlace weft::sdp::in_place_of(int fd) {
  if (const auto names = names_of(fd)) return {File{}, names->shadow};
  const SameErrno same;
  InPlace found;
  if (const auto written = written_names(fd)) found.made = tcp_socket_like(*written);
  found.fd = found.made.get();
  return found;
}

WEFT_SDP_EXPORT int getsockname(int fd, sockaddr* address, socklen_t* size) noexcept {
  if (!WEFT_SDP_FOR_PROGRAM) return real().getsockname(fd, address, size);
  if (const auto names = names_of(fd)) {
    if (names->own) return put(*names->own, address, size);
    return real().getsockname(names->shadow, address, size);
  }
  const auto written = written_names(fd);
  return written ? put(written->own, address, size) : real().getsockname(fd, address, size);
}

WEFT_SDP_EXPORT int getpeername(int fd, sockaddr* address, socklen_t* size) noexcept {
  if (!WEFT_SDP_FOR_PROGRAM) return real().getpeername(fd, address, size);
  if (const auto names = names_of(fd)) {
    const auto stream = Table::find(fd);
    if (stream && stream->tcp_state() == TCP_CLOSE) return failed(ENOTCONN);
    return put(names->peer, address, size);
  }
  if (const auto peer = RelayedNames::peer_of(fd)) return put(*peer, address, size);
  const auto written = written_names(fd);
  return written ? put(written->peer, address, size) : real().getpeername(fd, address, size);
}

WEFT_SDP_EXPORT int getsockopt(int fd, int level, int name, void* value, socklen_t* size) noexcept {
  const bool asked = WEFT_SDP_FOR_PROGRAM && !of_descriptor(level, name);
  const auto names = asked ? names_of(fd) : std::nullopt;
  if (names && level == SOL_SOCKET && name == SO_ERROR) return take_error(fd, value, size);
  if (names && level == SOL_SOCKET && name == SO_PEERNAME)
    return put_peer(names->peer, value, size);
  if (names && is_threshold(level, name)) {
    if (const auto stream = Table::find(fd)) return get_threshold(*stream, value, size);
  }
  const auto written = asked && !names ? names_in_place_of(fd, level, name) : std::nullopt;
  if (names || written) {
    const Address& peer = names ? names->peer : written->peer;
    if (const auto known = option_of_path(level, name, peer))
      return put_option(*known, value, size);
  }
  const File in_place = written ? tcp_socket_like(*written) : File{};
  const int asked_fd = names ? names->shadow : in_place ? in_place.get() : fd;
  const int status = real().getsockopt(asked_fd, level, name, value, size);
  // The shadow is not connected.
  if (names && status == 0 && level == IPPROTO_TCP && name == TCP_INFO && *size > 0) {
    if (const auto stream = Table::find(fd)) {
      static_cast<tcp_info*>(value)->tcpi_state = static_cast<uint8_t>(stream->tcp_state());
    }
  }
  return status;
}

WEFT_SDP_EXPORT int setsockopt(int fd, int level, int name, const void* value,
                               socklen_t size) noexcept {
  const bool program = WEFT_SDP_FOR_PROGRAM;
  const bool asked = program && !of_descriptor(level, name);
  const auto names = asked ? names_of(fd) : std::nullopt;
  // As with TCP before Linux 6.9.
  if (names && level == SOL_SOCKET && name == SO_PEEK_OFF) return failed(EOPNOTSUPP);
  int on = 0;
  if (names && level == SOL_SOCKET && name == SO_OOBINLINE && size >= sizeof on &&
      copy_guarded(&on, value, sizeof on)) {
    const SameErrno same;
    if (const auto stream = Table::find(fd)) stream->urgent().set_in_line(fd, on != 0);
  }
  if (names && is_threshold(level, name)) {
    if (const auto stream = Table::find(fd)) return set_threshold(*stream, value, size);
  }
  const auto written = asked && !names ? names_in_place_of(fd, level, name) : std::nullopt;
  const File in_place = written ? tcp_socket_like(*written) : File{};
  const int asked_fd = names ? names->shadow : in_place ? in_place.get() : fd;
  const int status = real().setsockopt(asked_fd, level, name, value, size);
  if (status != 0) return status;
  const SameErrno same;
  if (program && level == SOL_SOCKET && name == SO_RCVLOWAT) {
    if (const auto stream = Table::find(fd)) stream->receiving().take_low_water(fd);
  }
  if (names && is_buffer_size(level, name)) {
    if (const auto stream = Table::find(fd)) stream->take_buffer_sizes();
  }
  if (names && is_keepalive(level, name)) {
    if (const auto stream = Table::find(fd))
      return or_no_memory([&] { return stream->take_keepalive(), 0; });
  }
  if (names && level == SOL_SOCKET && name == SO_ZEROCOPY) {
    if (const auto stream = Table::find(fd)) stream->sending().take_zero_copy();
  }
  return 0;
}
