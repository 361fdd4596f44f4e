// Calls behind which a connection is relayed, for libc or the kernel moves its bytes by itself.
#include <aio.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>

#include "base/kept_errno.h"
#include "sdp/preload/caller.h"
#include "sdp/preload/next.h"
#include "sdp/sockets/epoll_set.h"
#include "sdp/sockets/registrations.h"
#include "sdp/sockets/table.h"

namespace {

void relay(int fd) {
  const weft::SameErrno same;
  weft::sdp::Table::relay(fd);
}

}  // namespace

WEFT_SDP_EXPORT FILE* fdopen(int fd, const char* mode) noexcept {
  relay(fd);
  {
    const weft::SameErrno same;
    weft::sdp::Registrations::give_away(fd);
    weft::sdp::EpollSet::make_plain(fd);
  }
  return WEFT_SDP_NEXT(fdopen)(fd, mode);
}

WEFT_SDP_EXPORT int vdprintf(int fd, const char* format, va_list arguments) {
  relay(fd);
  return WEFT_SDP_NEXT(vdprintf)(fd, format, arguments);
}

WEFT_SDP_EXPORT int dprintf(int fd, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int written = vdprintf(fd, format, arguments);
  va_end(arguments);
  return written;
}

// Those of programs that were built with _FORTIFY_SOURCE.
extern "C" {
int __vdprintf_chk(int fd, int flag, const char* format, va_list arguments);
int __dprintf_chk(int fd, int flag, const char* format, ...);
}

WEFT_SDP_EXPORT int __vdprintf_chk(int fd, int flag, const char* format, va_list arguments) {
  relay(fd);
  return WEFT_SDP_NEXT(__vdprintf_chk)(fd, flag, format, arguments);
}

WEFT_SDP_EXPORT int __dprintf_chk(int fd, int flag, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int written = __vdprintf_chk(fd, flag, format, arguments);
  va_end(arguments);
  return written;
}

WEFT_SDP_EXPORT int aio_read(aiocb* block) noexcept {
  relay(block->aio_fildes);
  return WEFT_SDP_NEXT(aio_read)(block);
}

WEFT_SDP_EXPORT int aio_read64(aiocb64* block) noexcept {
  relay(block->aio_fildes);
  return WEFT_SDP_NEXT(aio_read64)(block);
}

WEFT_SDP_EXPORT int aio_write(aiocb* block) noexcept {
  relay(block->aio_fildes);
  return WEFT_SDP_NEXT(aio_write)(block);
}

WEFT_SDP_EXPORT int aio_write64(aiocb64* block) noexcept {
  relay(block->aio_fildes);
  return WEFT_SDP_NEXT(aio_write64)(block);
}

namespace {

template <class Block>
void relay_all_of(Block* const* blocks, int count) {
  for (int i = 0; i < count; ++i) {
    if (blocks[i] != nullptr) relay(blocks[i]->aio_fildes);
  }
}

}  // namespace

WEFT_SDP_EXPORT int lio_listio(int mode, aiocb* const* blocks, int count,
                               sigevent* event) noexcept {
  relay_all_of(blocks, count);
  return WEFT_SDP_NEXT(lio_listio)(mode, blocks, count, event);
}

WEFT_SDP_EXPORT int lio_listio64(int mode, aiocb64* const* blocks, int count,
                                 sigevent* event) noexcept {
  relay_all_of(blocks, count);
  return WEFT_SDP_NEXT(lio_listio64)(mode, blocks, count, event);
}

WEFT_SDP_EXPORT ssize_t splice(int from, off64_t* from_offset, int to, off64_t* to_offset,
                               size_t size, unsigned flags) {
  relay(from);
  relay(to);
  return WEFT_SDP_NEXT(splice)(from, from_offset, to, to_offset, size, flags);
}
