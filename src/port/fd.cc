#include "port/fd.h"

#include <fcntl.h>

#include "port/calls.h"

namespace weft::port {
namespace {

constexpr int kAbove = 1024;

}  // namespace

void Fd::reset() {
  // close(2) has given the number back even when it reports an error; there is nothing to repeat.
  if (fd_ >= 0) calls::close(std::exchange(fd_, -1));
}

Fd Fd::duplicate() const {
  const int high = ::fcntl(fd_, F_DUPFD_CLOEXEC, kAbove);
  return Fd{high >= 0 ? high : ::fcntl(fd_, F_DUPFD_CLOEXEC, 0)};
}

Fd raise(Fd fd) {
  if (!fd.valid() || fd.get() >= kAbove) return fd;
  const int high = ::fcntl(fd.get(), F_DUPFD_CLOEXEC, kAbove);
  return high >= 0 ? Fd{high} : std::move(fd);
}

}  // namespace weft::port
