#include "sdp/loop/file.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "sdp/loop/own_descriptors.h"

namespace weft::sdp {
namespace {

// Programs with select(2) use numbers below 1024.
constexpr rlim_t kFloor = 1024;

int floor_of_numbers() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 3;
  return static_cast<int>(std::min(kFloor, limit.rlim_cur / 2));
}

}  // namespace

// Not close(2): the library stands in its place.
void File::reset(int fd) {
  if (fd_ >= 0) {
    OwnDescriptors::drop(fd_);
    (void)::syscall(SYS_close, fd_);
  }
  fd_ = fd;
}

File out_of_the_way(File file) {
  if (file && file.get() < floor_of_numbers()) {
    File moved{
        static_cast<int>(::syscall(SYS_fcntl, file.get(), F_DUPFD_CLOEXEC, floor_of_numbers()))};
    if (moved) file = std::move(moved);
  }
  if (file) OwnDescriptors::add(file.get());
  return file;
}

}  // namespace weft::sdp
