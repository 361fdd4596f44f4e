#include "sdp/sockets/last_bytes.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "sdp/sockets/library.h"
#include "sdp/sockets/table.h"

namespace weft::sdp {
namespace {

template <class Done>
void wait_at_end(Done done) {
  constexpr std::chrono::seconds kMost{10};
  const auto end = std::chrono::steady_clock::now() + kMost;
  while (!done() && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
}

// What another process has of them goes on, and this one waits for that. Other threads run until
// the process is gone, and may use their numbers: something inert takes their places, on which
// reads wait, and writes once its buffer is full.
void close_own_descriptors(const Library& library) {
  int inert[2];  // until the end
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, inert) != 0) return;
  DIR* folder = ::opendir("/proc/self/fd");
  if (folder == nullptr) return;
  std::vector<int> own;
  while (const dirent* entry = ::readdir(folder)) {
    int fd = -1;
    const char* name = entry->d_name;
    const char* end = name + std::strlen(name);
    if (std::from_chars(name, end, fd).ptr == end && library.names(fd)) own.push_back(fd);
  }
  ::closedir(folder);
  for (const int fd : own) {
    Table::drop(fd);
    (void)::syscall(SYS_dup3, inert[0], fd, O_CLOEXEC);
  }
}

}  // namespace

void await_last_bytes() {
  Library* library = Library::of_caller();
  if (library == nullptr || library->drained()) return;
  close_own_descriptors(*library);
  library->give_up_unaccepted();
  wait_at_end([library] { return library->drained(); });
}

void await_bytes_so_far() {
  Library* library = Library::of_caller();
  if (library != nullptr) wait_at_end([library] { return library->all_sent(); });
}

}  // namespace weft::sdp
