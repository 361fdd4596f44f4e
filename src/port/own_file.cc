#include "port/own_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "port/calls.h"

namespace weft::port {

Result<Fd, SystemError> append_to_own_file(const std::string& path) {
  constexpr mode_t kOwnerOnly = 0600;
  // A FIFO without a reader is refused and not waited for.
  Fd file = raise(Fd{calls::open(
      path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
      kOwnerOnly)});
  if (!file.valid()) return fail(SystemError{errno, "open"});
  struct stat s {};
  if (::fstat(file.get(), &s) != 0) return fail(SystemError{errno, "fstat"});
  if (!S_ISREG(s.st_mode) || s.st_uid != ::geteuid() || s.st_nlink != 1) {
    return fail(SystemError{EPERM, "not a file of this user's under one name"});
  }
  return file;
}

}  // namespace weft::port
