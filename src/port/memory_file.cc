#include "port/memory_file.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cerrno>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

namespace weft::port {

Fd memory_file(const char* name) {
  // Kernels before 6.3 do not know the flag, later ones want a word about execution.
  constexpr unsigned kFlags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  int fd = ::memfd_create(name, kFlags | MFD_NOEXEC_SEAL);
  if (fd < 0 && errno == EINVAL) fd = ::memfd_create(name, kFlags);
  Fd file = raise(Fd{fd});
  if (file.valid()) (void)::fchmod(file.get(), S_IRUSR | S_IWUSR);
  return file;
}

uint64_t largest_file() {
  rlimit limit{};
  return ::getrlimit(RLIMIT_FSIZE, &limit) == 0 ? limit.rlim_cur : UINT64_MAX;
}

}  // namespace weft::port
