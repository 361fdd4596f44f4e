// Calls that move bytes. What is no connection, or one that is relayed, is libc's.
#include <pthread.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstring>
#include <optional>
#include <ratio>
#include <span>

#include "base/guarded.h"
#include "base/kept_errno.h"
#include "sdp/preload/caller.h"
#include "sdp/preload/error_queue.h"
#include "sdp/preload/memory.h"
#include "sdp/preload/next.h"
#include "sdp/sockets/epoll_set.h"
#include "sdp/sockets/mirror_calls.h"
#include "sdp/sockets/pieces.h"
#include "sdp/sockets/registrations.h"
#include "sdp/sockets/stream.h"
#include "sdp/sockets/table.h"

using namespace std::chrono_literals;
using std::chrono::duration_cast;
using std::chrono::seconds;
using weft::copy_guarded;
using weft::keeping_errno;
using weft::readable_guarded;
using weft::SameErrno;
using weft::sdp::EpollSet;
using weft::sdp::guard_memory;
using weft::sdp::or_no_memory;
using weft::sdp::Pieces;
using weft::sdp::receive_report;
using weft::sdp::Registrations;
using weft::sdp::Table;
using weft::sdp::to_timespec;

namespace {

// What read(2) and its relatives move at most.
constexpr size_t kMost = 0x7ffff000;

std::optional<ssize_t> take_in(int fd, std::span<const iovec> to, int flags) {
  const auto stream = Table::find(fd);
  if (!stream) return std::nullopt;
  // As libc's does, before it moves anything.
  ::pthread_testcancel();
  if (stream->waiting().watched()) stream->waiting().looked_at();
  return or_no_memory([&] { return stream->receive(fd, to, flags); });
}

std::optional<ssize_t> take_in(int fd, void* to, size_t size, int flags) {
  const iovec piece{to, std::min(size, kMost)};
  return take_in(fd, {&piece, 1}, flags);
}

std::optional<ssize_t> give_out(int fd, std::span<const iovec> from, int flags) {
  const auto stream = Table::find(fd);
  if (!stream) return std::nullopt;
  ::pthread_testcancel();
  return or_no_memory([&] { return stream->send(fd, from, flags); });
}

std::optional<ssize_t> give_out(int fd, const void* from, size_t size, int flags) {
  const iovec piece{const_cast<void*>(from), std::min(size, kMost)};
  return give_out(fd, {&piece, 1}, flags);
}

// What a connection may look at. Nothing where `fd` is none, or the kernel says what is wrong.
std::optional<std::span<const iovec>> pieces(int fd, const iovec* v, size_t count) {
  if (!Table::find(fd) || count > IOV_MAX || !readable_guarded(v, count * sizeof *v)) {
    return std::nullopt;
  }
  const std::span all{v, count};
  const auto good = [](const iovec& piece) { return piece.iov_len <= SSIZE_MAX; };
  if (!std::all_of(all.begin(), all.end(), good)) return std::nullopt;
  return all;
}

std::optional<std::span<const iovec>> pieces(int fd, const msghdr* message) {
  if (!Table::find(fd) || !readable_guarded(message, sizeof *message)) return std::nullopt;
  return pieces(fd, message->msg_iov, message->msg_iovlen);
}

// What recvmsg(2) tells of a stream socket besides the bytes.
void nothing_but_bytes(msghdr* message, ssize_t n, int flags) {
  message->msg_namelen = 0;
  message->msg_controllen = 0;
  message->msg_flags = flags & MSG_OOB;
  if (n == 0) message->msg_flags |= (flags & MSG_OOB) != 0 ? MSG_TRUNC : 0;
}

// None of those that it has says that it is longer than there is room for, or shorter than it is.
// False also for what cannot be read.
bool has_good_control(const msghdr* message) {
  if (!readable_guarded(message, sizeof *message)) return false;
  auto& m = const_cast<msghdr&>(*message);
  if (m.msg_controllen == 0) return true;
  if (!readable_guarded(m.msg_control, m.msg_controllen)) return false;
  const auto* end = static_cast<const char*>(m.msg_control) + m.msg_controllen;
  for (cmsghdr* c = CMSG_FIRSTHDR(&m); c != nullptr; c = CMSG_NXTHDR(&m, c)) {
    const auto room = static_cast<size_t>(end - reinterpret_cast<const char*>(c));
    if (c->cmsg_len < CMSG_LEN(0) || c->cmsg_len > room) return false;
  }
  return true;
}

// Whoever gets a descriptor by a message uses the kernel's calls, and has a copy.
void leave_passed_to_kernel(const msghdr* message) {
  const SameErrno same;
  guard_memory();
  if (!has_good_control(message)) return;
  auto& m = const_cast<msghdr&>(*message);
  for (cmsghdr* c = CMSG_FIRSTHDR(&m); c != nullptr; c = CMSG_NXTHDR(&m, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
      Table::relay(fd);
      Registrations::give_away(fd);
      EpollSet::make_plain(fd);
    }
  }
}

size_t bytes_of(const msghdr& message) {
  return Pieces{{message.msg_iov, message.msg_iovlen}}.wanted();
}

bool is_time(const timespec* time) {
  return readable_guarded(time, sizeof *time) && time->tv_sec >= 0 && time->tv_nsec >= 0 &&
         time->tv_nsec < std::nano::den;
}

// A time that this cannot count is one that does not end.
std::chrono::nanoseconds to_time(const timespec& time) {
  const seconds most = duration_cast<seconds>(std::chrono::nanoseconds::max()) - 1s;
  return std::min(seconds{time.tv_sec}, most) + std::chrono::nanoseconds{time.tv_nsec};
}

// What flags of preadv2(2) and pwritev2(2) are for recv(2) and send(2). Nothing of a place, which
// the kernel refuses, and of others: what they do is the kernel's to know.
std::optional<int> flags_of(int fd, off64_t place, int flags) {
  constexpr int kOfFiles = RWF_HIPRI | RWF_DSYNC | RWF_SYNC;
  if (place != -1) return std::nullopt;
  if ((flags & ~(kOfFiles | RWF_NOWAIT)) == 0) return (flags & RWF_NOWAIT) != 0 ? MSG_DONTWAIT : 0;
  Table::relay(fd);
  return std::nullopt;
}

std::optional<ssize_t> take_in_pieces(int fd, const iovec* to, int count,
                                      std::optional<int> flags) {
  const auto all = pieces(fd, to, static_cast<size_t>(count));
  if (!flags || !all || Pieces{*all}.wanted() == 0) return std::nullopt;
  return take_in(fd, *all, *flags);
}

std::optional<ssize_t> give_out_pieces(int fd, const iovec* from, int count,
                                       std::optional<int> flags) {
  const auto all = pieces(fd, from, static_cast<size_t>(count));
  if (!flags || !all || Pieces{*all}.wanted() == 0) return std::nullopt;
  return give_out(fd, *all, *flags);
}

// The peer's name, of a stream: nothing. That it cannot be told is found behind the bytes.
ssize_t without_name(ssize_t n, const sockaddr* address, socklen_t* length) {
  const socklen_t none = 0;
  if (n < 0 || address == nullptr || copy_guarded(length, &none, sizeof none)) return n;
  errno = EFAULT;
  return -1;
}

bool is_offset(const off_t* offset) {
  return offset == nullptr || readable_guarded(offset, sizeof *offset);
}

}  // namespace

// One of no bytes never waits, nor does readv(2); recv(2) and its relatives do.
WEFT_SDP_EXPORT ssize_t read(int fd, void* to, size_t size) {
  if (size > 0) {
    if (const auto n = take_in(fd, to, size, 0)) return *n;
  }
  return WEFT_SDP_NEXT(read)(fd, to, size);
}

WEFT_SDP_EXPORT ssize_t recv(int fd, void* to, size_t size, int flags) {
  if (const auto n = take_in(fd, to, size, flags)) return *n;
  return WEFT_SDP_NEXT(recv)(fd, to, size, flags);
}

WEFT_SDP_EXPORT ssize_t recvfrom(int fd, void* to, size_t size, int flags, sockaddr* address,
                                 socklen_t* length) {
  if (const auto n = take_in(fd, to, size, flags)) return without_name(*n, address, length);
  return WEFT_SDP_NEXT(recvfrom)(fd, to, size, flags, address, length);
}

WEFT_SDP_EXPORT ssize_t readv(int fd, const iovec* to, int count) {
  if (const auto n = take_in_pieces(fd, to, count, 0)) return *n;
  return WEFT_SDP_NEXT(readv)(fd, to, count);
}

WEFT_SDP_EXPORT ssize_t preadv2(int fd, const iovec* to, int count, off_t place, int flags) {
  if (const auto n = take_in_pieces(fd, to, count, flags_of(fd, place, flags))) return *n;
  return WEFT_SDP_NEXT(preadv2)(fd, to, count, place, flags);
}

WEFT_SDP_EXPORT ssize_t preadv64v2(int fd, const iovec* to, int count, off64_t place, int flags) {
  if (const auto n = take_in_pieces(fd, to, count, flags_of(fd, place, flags))) return *n;
  return WEFT_SDP_NEXT(preadv64v2)(fd, to, count, place, flags);
}

WEFT_SDP_EXPORT ssize_t recvmsg(int fd, msghdr* message, int flags) {
  if (const auto all = pieces(fd, message)) {
    if ((flags & MSG_ERRQUEUE) != 0) {
      if (const auto stream = Table::find(fd)) {
        return keeping_errno([&] { return receive_report(*stream, fd, message); });
      }
    }
    if (const auto n = take_in(fd, *all, flags)) {
      if (*n >= 0) nothing_but_bytes(message, *n, flags);
      return *n;
    }
  }
  return WEFT_SDP_NEXT(recvmsg)(fd, message, flags);
}

WEFT_SDP_EXPORT int recvmmsg(int fd, mmsghdr* messages, unsigned count, int flags,
                             timespec* timeout) {
  const auto stream = Table::find(fd);
  // Of a time that is none the kernel says what is wrong, before anything is received.
  if (!stream || stream->relayed() || count == 0 || (timeout != nullptr && !is_time(timeout))) {
    return WEFT_SDP_NEXT(recvmmsg)(fd, messages, count, flags, timeout);
  }
  return keeping_errno([&] {
    using Clock = std::chrono::steady_clock;
    const auto began = Clock::now();
    const std::chrono::nanoseconds limit = timeout != nullptr ? to_time(*timeout) : 0ns;
    unsigned done = 0;
    while (done < count) {
      msghdr& message = messages[done].msg_hdr;
      const ssize_t n = recvmsg(fd, &message, flags & ~MSG_WAITFORONE);
      if (n < 0) {
        if (done > 0) stream->leave_error(errno);
        break;
      }
      messages[done++].msg_len = static_cast<unsigned>(n);
      if ((flags & MSG_WAITFORONE) != 0) flags |= MSG_DONTWAIT;
      // It ends no call that waits: the kernel looks at it behind each message.
      if (timeout != nullptr) {
        const auto left = std::max<std::chrono::nanoseconds>(limit - (Clock::now() - began), 0ns);
        *timeout = to_timespec(left);
        if (left == 0ns) break;
      }
      if ((message.msg_flags & MSG_OOB) != 0) break;
    }
    return done > 0 ? static_cast<int>(done) : -1;
  });
}

WEFT_SDP_EXPORT ssize_t write(int fd, const void* from, size_t size) {
  if (const auto n = give_out(fd, from, size, 0)) return *n;
  return WEFT_SDP_NEXT(write)(fd, from, size);
}

WEFT_SDP_EXPORT ssize_t send(int fd, const void* from, size_t size, int flags) {
  if (const auto n = give_out(fd, from, size, flags)) return *n;
  return WEFT_SDP_NEXT(send)(fd, from, size, flags);
}

// The address of a connected socket means nothing to TCP, but has to be one.
WEFT_SDP_EXPORT ssize_t sendto(int fd, const void* from, size_t size, int flags, const sockaddr* to,
                               socklen_t length) {
  const auto stream = Table::find(fd);
  if (!stream) return WEFT_SDP_NEXT(sendto)(fd, from, size, flags, to, length);
  const bool too_long = to != nullptr && length > sizeof(sockaddr_storage);
  if (too_long || (to != nullptr && !readable_guarded(to, length))) {
    errno = too_long ? EINVAL : EFAULT;
    return -1;
  }
  if (const auto n = give_out(fd, from, size, flags)) return *n;
  return WEFT_SDP_NEXT(send)(fd, from, size, flags);
}

// One of no bytes succeeds behind the end, too; write(2) and send(2) do not.
WEFT_SDP_EXPORT ssize_t writev(int fd, const iovec* from, int count) {
  if (const auto n = give_out_pieces(fd, from, count, 0)) return *n;
  return WEFT_SDP_NEXT(writev)(fd, from, count);
}

WEFT_SDP_EXPORT ssize_t pwritev2(int fd, const iovec* from, int count, off_t place, int flags) {
  if (const auto n = give_out_pieces(fd, from, count, flags_of(fd, place, flags))) return *n;
  return WEFT_SDP_NEXT(pwritev2)(fd, from, count, place, flags);
}

WEFT_SDP_EXPORT ssize_t pwritev64v2(int fd, const iovec* from, int count, off64_t place,
                                    int flags) {
  if (const auto n = give_out_pieces(fd, from, count, flags_of(fd, place, flags))) return *n;
  return WEFT_SDP_NEXT(pwritev64v2)(fd, from, count, place, flags);
}

WEFT_SDP_EXPORT ssize_t sendmsg(int fd, const msghdr* message, int flags) {
  leave_passed_to_kernel(message);
  const auto all = pieces(fd, message);
  if (all && has_good_control(message)) {
    if (const auto n = give_out(fd, *all, flags)) return *n;
  }
  return WEFT_SDP_NEXT(sendmsg)(fd, message, flags);
}

WEFT_SDP_EXPORT int sendmmsg(int fd, mmsghdr* messages, unsigned count, int flags) {
  for (unsigned i = 0; i < count; ++i) leave_passed_to_kernel(&messages[i].msg_hdr);
  if (!Table::find(fd) || count == 0) return WEFT_SDP_NEXT(sendmmsg)(fd, messages, count, flags);
  return keeping_errno([&] {
    unsigned done = 0;
    while (done < std::min<unsigned>(count, IOV_MAX)) {
      const ssize_t n = sendmsg(fd, &messages[done].msg_hdr, flags);
      if (n < 0) break;
      const size_t wanted = bytes_of(messages[done].msg_hdr);
      messages[done++].msg_len = static_cast<unsigned>(n);
      // What comes behind a message may not go in front of the rest of it.
      if (static_cast<size_t>(n) < wanted) break;
    }
    return done > 0 ? static_cast<int>(done) : -1;
  });
}

WEFT_SDP_EXPORT ssize_t sendfile(int to, int from, off_t* offset, size_t count) noexcept {
  if (const auto stream = Table::find(to); stream && is_offset(offset)) {
    const auto send = [&] { return stream->sending().send_file(to, from, offset, count); };
    if (const auto n = or_no_memory(send)) return *n;
  }
  return WEFT_SDP_NEXT(sendfile)(to, from, offset, count);
}

WEFT_SDP_EXPORT ssize_t sendfile64(int to, int from, off64_t* offset, size_t count) noexcept {
  if (const auto stream = Table::find(to); stream && is_offset(offset)) {
    const auto send = [&] { return stream->sending().send_file(to, from, offset, count); };
    if (const auto n = or_no_memory(send)) return *n;
  }
  return WEFT_SDP_NEXT(sendfile64)(to, from, offset, count);
}

// The variants of programs that were built with _FORTIFY_SOURCE. Their check of `size` is libc's.
extern "C" {
ssize_t __read_chk(int fd, void* to, size_t size, size_t room);
ssize_t __recv_chk(int fd, void* to, size_t size, size_t room, int flags);
ssize_t __recvfrom_chk(int fd, void* to, size_t size, size_t room, int flags, sockaddr* address,
                       socklen_t* length);
}

WEFT_SDP_EXPORT ssize_t __read_chk(int fd, void* to, size_t size, size_t room) {
  if (size > 0 && size <= room) {
    if (const auto n = take_in(fd, to, size, 0)) return *n;
  }
  return WEFT_SDP_NEXT(__read_chk)(fd, to, size, room);
}

WEFT_SDP_EXPORT ssize_t __recv_chk(int fd, void* to, size_t size, size_t room, int flags) {
  if (size <= room) {
    if (const auto n = take_in(fd, to, size, flags)) return *n;
  }
  return WEFT_SDP_NEXT(__recv_chk)(fd, to, size, room, flags);
}

WEFT_SDP_EXPORT ssize_t __recvfrom_chk(int fd, void* to, size_t size, size_t room, int flags,
                                       sockaddr* address, socklen_t* length) {
  if (size <= room) {
    if (const auto n = take_in(fd, to, size, flags)) return without_name(*n, address, length);
  }
  return WEFT_SDP_NEXT(__recvfrom_chk)(fd, to, size, room, flags, address, length);
}
