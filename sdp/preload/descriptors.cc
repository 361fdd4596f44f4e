// Calls that make, end and change descriptors.
#include <fcntl.h>
#include <linux/sockios.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <optional>

#include "base/guarded.h"
#include "base/kept_errno.h"
#include "sdp/loop/file.h"
#include "sdp/loop/own_descriptors.h"
#include "sdp/preload/caller.h"
#include "sdp/preload/descriptors.h"
#include "sdp/preload/left_open.h"
#include "sdp/preload/memory.h"
#include "sdp/preload/names.h"
#include "sdp/preload/next.h"
#include "sdp/sockets/epoll_set.h"
#include "sdp/sockets/fallbacks.h"
#include "sdp/sockets/listeners.h"
#include "sdp/sockets/registrations.h"
#include "sdp/sockets/relayed_names.h"
#include "sdp/sockets/stream.h"
#include "sdp/sockets/table.h"

using namespace weft::sdp;
using weft::keeping_errno;
using weft::SameErrno;

namespace {

// What it takes memory for, the kernel's own end of the descriptor tells as well.
void forget(int fd) {
  Table::drop(fd);
  (void)if_memory([fd] { Listeners::drop(fd); });
  Fallbacks::drop(fd);
  RelayedNames::drop(fd);
  Registrations::end(fd);
  EpollSet::end(fd);
}

void forget_range(unsigned first, unsigned last) {
  Table::drop_range(first, last);
  (void)if_memory([=] { Listeners::drop_range(first, last); });
  Fallbacks::drop_range(first, last);
  Registrations::end_range(first, last);
  EpollSet::end_range(first, last);
}

// With CLOSE_RANGE_CLOEXEC nothing is closed yet, and with a flag that is unknown nothing at all.
bool closes(int flags) {
  constexpr unsigned kCloses = CLOSE_RANGE_UNSHARE;
  return (static_cast<unsigned>(flags) & ~kCloses) == 0;
}

int close_range_of_program(unsigned first, unsigned last, int flags) {
  if (!closes(flags)) return WEFT_SDP_NEXT(close_range)(first, last, flags);
  return keeping_errno([=] {
    forget_range(first, last);
    return close_others(first, last, flags);
  });
}

int copied(int from, int to) {
  if (to < 0 || to == from) return to;
  {
    const SameErrno same;
    forget(to);
  }
  const auto copy = [=] {
    Table::copy(from, to);
    Registrations::copy(from, to);
    EpollSet::make_plain(from);
  };
  if (if_memory(copy)) return to;
  (void)File{to};
  errno = ENOMEM;
  return -1;
}

// F_SETOWN and the like.
void take_owner(int fd) {
  const SameErrno same;
  if (const auto stream = Table::find(fd)) stream->waiting().take_owner(fd);
}

// By a pointer of the program's.
int tell(void* to, int number) {
  if (weft::copy_guarded(to, &number, sizeof number)) return 0;
  errno = EFAULT;
  return -1;
}

// What is asked about a connection and the library knows.
std::optional<int> answer_of_connection(int fd, unsigned long request, void* argument) {
  if (request == FIONREAD) {
    const auto stream = Table::find(fd);
    const auto bytes = stream ? stream->receiving().available() : std::nullopt;
    if (bytes) return tell(argument, *bytes);
  }
  if (request == SIOCATMARK) {
    const auto stream = Table::find(fd);
    const auto at_mark = stream ? stream->urgent().at_mark() : std::nullopt;
    if (at_mark) return tell(argument, static_cast<int>(*at_mark));
  }
  if (request == SIOCOUTQ || request == SIOCOUTQNSD) {
    const auto stream = Table::find(fd);
    const auto queued = stream ? stream->sending().queued() : std::nullopt;
    if (queued) return tell(argument, request == SIOCOUTQ ? queued->all : queued->unsent);
  }
  return std::nullopt;
}

int after_fcntl(int fd, int command, int result, bool for_program) {
  const bool owner = command == F_SETOWN || command == F_SETOWN_EX || command == F_SETFL;
  if (owner && result == 0) take_owner(fd);
  if (command != F_DUPFD && command != F_DUPFD_CLOEXEC) return result;
  if (!for_program) OwnDescriptors::add(result);
  return copied(fd, result);
}

bool copies(long number) {
#ifdef SYS_dup2
  if (number == SYS_dup2) return true;
#endif
  return number == SYS_dup || number == SYS_dup3;
}

// By its first descriptor, splice(2) also by another one.
bool moves_bytes(long number) {
  switch (number) {
    case SYS_read:
    case SYS_readv:
    case SYS_preadv2:
    case SYS_recvfrom:
    case SYS_recvmsg:
    case SYS_recvmmsg:
    case SYS_write:
    case SYS_writev:
    case SYS_pwritev2:
    case SYS_sendto:
    case SYS_sendmsg:
    case SYS_sendmmsg:
    case SYS_sendfile:
    case SYS_splice:
      return true;
    default:
      return false;
  }
}

}  // namespace

bool weft::sdp::concerns_descriptors(long number) {
  return number == SYS_close || number == SYS_close_range || copies(number) || moves_bytes(number);
}

std::optional<long> weft::sdp::before_call_on_descriptors(long number, long first, long second,
                                                          long third) {
  if (number == SYS_close) {
    if (is_left_open(static_cast<int>(first))) return kLeftOpen;
    forget(static_cast<int>(first));
  }
  if (number == SYS_close_range) {
    return close_range_of_program(static_cast<unsigned>(first), static_cast<unsigned>(second),
                                  static_cast<int>(third));
  }
  if (copies(number) && number != SYS_dup && is_left_open(static_cast<int>(second))) {
    return kLeftOpen;
  }
  if (moves_bytes(number)) Table::relay(static_cast<int>(first));
  if (number == SYS_splice) Table::relay(static_cast<int>(third));
  return std::nullopt;
}

long weft::sdp::after_call_on_descriptors(long number, long first, long result) {
  return copies(number) ? copied(static_cast<int>(first), static_cast<int>(result)) : result;
}

WEFT_SDP_EXPORT int close(int fd) {
  if (WEFT_SDP_FOR_PROGRAM) {
    // Before anything is done, as in libc's.
    ::pthread_testcancel();
    if (is_left_open(fd)) return kLeftOpen;
    const SameErrno same;
    forget(fd);
  } else {
    OwnDescriptors::drop(fd);
  }
  return WEFT_SDP_NEXT(close)(fd);
}

WEFT_SDP_EXPORT int close_range(unsigned first, unsigned last, int flags) noexcept {
  return close_range_of_program(first, last, flags);
}

WEFT_SDP_EXPORT void closefrom(int first) noexcept {
  const SameErrno same;
  const auto from = static_cast<unsigned>(first < 0 ? 0 : first);
  forget_range(from, ~0U);
  // Where the kernel has no close_range(2), libc knows how.
  if (close_others(from, ~0U, 0) != 0) WEFT_SDP_NEXT(closefrom)(first);
}

WEFT_SDP_EXPORT int shutdown(int fd, int how) noexcept {
  const auto stream = Table::find(fd);
  if (stream && or_no_memory([&] { return stream->shutdown(fd, how) ? 0 : -1; }) != 0) return -1;
  const int status = WEFT_SDP_NEXT(shutdown)(fd, how);
  // A listener hears nobody any more.
  if (status == 0 && !stream && how != SHUT_WR && WEFT_SDP_FOR_PROGRAM) {
    (void)if_memory([fd] { Listeners::drop(fd); });
  }
  return status;
}

WEFT_SDP_EXPORT int dup(int fd) noexcept {
  return copied(fd, WEFT_SDP_NEXT(dup)(fd));
}

WEFT_SDP_EXPORT int dup2(int from, int to) noexcept {
  if (WEFT_SDP_FOR_PROGRAM && is_left_open(to)) return kLeftOpen;
  return copied(from, WEFT_SDP_NEXT(dup2)(from, to));
}

WEFT_SDP_EXPORT int dup3(int from, int to, int flags) noexcept {
  if (WEFT_SDP_FOR_PROGRAM && is_left_open(to)) return kLeftOpen;
  return copied(from, WEFT_SDP_NEXT(dup3)(from, to, flags));
}

// All commands take a word, or nothing.
WEFT_SDP_EXPORT int fcntl(int fd, int command, ...) {
  va_list arguments;
  va_start(arguments, command);
  void* argument = va_arg(arguments, void*);
  va_end(arguments);
  const bool for_program = WEFT_SDP_FOR_PROGRAM;
  return after_fcntl(fd, command, WEFT_SDP_NEXT(fcntl)(fd, command, argument), for_program);
}

WEFT_SDP_EXPORT int fcntl64(int fd, int command, ...) {
  va_list arguments;
  va_start(arguments, command);
  void* argument = va_arg(arguments, void*);
  va_end(arguments);
  const bool for_program = WEFT_SDP_FOR_PROGRAM;
  return after_fcntl(fd, command, WEFT_SDP_NEXT(fcntl64)(fd, command, argument), for_program);
}

WEFT_SDP_EXPORT int ioctl(int fd, unsigned long request, ...) noexcept {
  va_list arguments;
  va_start(arguments, request);
  void* argument = va_arg(arguments, void*);
  va_end(arguments);
  const auto known = [=] { return answer_of_connection(fd, request, argument); };
  if (const auto result = keeping_errno(known)) return *result;
  int result = WEFT_SDP_NEXT(ioctl)(fd, request, argument);
  // A question that sockets of IP alone know, as SIOCGIFADDR.
  if (result < 0 && errno == ENOTTY && WEFT_SDP_FOR_PROGRAM) {
    if (const InPlace at = in_place_of(fd); at.is_connection()) {
      result = WEFT_SDP_NEXT(ioctl)(at.fd, request, argument);
    }
  }
  const bool owner = request == FIOSETOWN || request == SIOCSPGRP || request == FIOASYNC;
  if (owner && result == 0) take_owner(fd);
  return result;
}
