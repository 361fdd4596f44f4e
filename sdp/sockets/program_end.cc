#include "sdp/sockets/program_end.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <utility>

#include "sdp/loop/file.h"
#include "sdp/sockets/mirror.h"
#include "sdp/sockets/real.h"
#include "sdp/sockets/table.h"

namespace weft::sdp {

int ProgramEnd::descriptor(int fd) const {
  return Table::is_at(fd, stream_) ? fd : any_descriptor();
}

int ProgramEnd::any_descriptor() const {
  return Table::descriptor_of(stream_);
}

int ProgramEnd::open_descriptor(int fd) const {
  for (const int one : {fd, any_descriptor()}) {
    if (cookie_of(one) == cookie_) return one;
  }
  return -1;
}

bool ProgramEnd::drop_closed() const {
  Table::drop_closed(stream_, cookie_);
  return Table::holds(stream_);
}

bool ProgramEnd::blocks(int fd, int flags) const {
  if ((flags & MSG_DONTWAIT) != 0) return false;
  const long status = ::syscall(SYS_fcntl, descriptor(fd), F_GETFL, 0);
  return status < 0 || (status & O_NONBLOCK) == 0;
}

// Only the program's end can. Its number may be another file's at any time, a copy of it may not.
void ProgramEnd::put_byte(int fd) const {
  const File copy{static_cast<int>(::syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, 0))};
  if (!copy || cookie_of(copy.get()) != cookie_) return;
  (void)real().send(copy.get(), "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

bool ProgramEnd::shut_writing() {
  return !std::exchange(shut_for_writing_, true);
}

}  // namespace weft::sdp
