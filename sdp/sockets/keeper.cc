#include "sdp/sockets/keeper.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <mutex>
#include <new>
#include <thread>

#include "sdp/loop/handlers.h"
#include "sdp/sockets/mirror.h"
#include "sdp/sockets/passed.h"
#include "sdp/sockets/real.h"
#include "sdp/sockets/registrations.h"

namespace weft::sdp {
namespace {

Mutex g_lock;
// The program's end of the socket by which all its processes ask.
File& g_keeper = *new File;

// A request comes with the socket that is to be connected, and one for the answer. The answer comes
// with the program's end of a mirror, or says why it is TCP's.
struct Request {
  Address to{};
  bool remember = false;
};
struct Answer {
  Fallback why = Fallback::none;
};

// ---- the keeper

void answer_one(const Request& request, std::array<File, kMostPassed>& files) {
  Library* library = Library::get();
  Library::Kept kept{File{}, Fallback::no_adapter};
  if (library != nullptr) {
    kept = library->connect_and_keep(std::move(files[0]), request.to, request.remember);
  }
  const Answer answer{kept.why};
  (void)pass(files[1].get(), {reinterpret_cast<const std::byte*>(&answer), sizeof answer},
             {kept.connection.get(), -1});
}

// Nothing of the program's but the socket by which it asks.
[[noreturn]] void keep(int asked) {
  constexpr int kAsked = 3;
  (void)::setsid();
  (void)::prctl(PR_SET_NAME, "weft-sdp-keeper");
  (void)!::chdir("/");
  for (int n = 1; n < NSIG; ++n) (void)Handlers::set(n, SIG_DFL);
  sigset_t none;
  (void)sigemptyset(&none);
  (void)::pthread_sigmask(SIG_SETMASK, &none, nullptr);
  (void)::syscall(SYS_dup3, asked, kAsked, O_CLOEXEC);
  (void)::syscall(SYS_close_range, kAsked + 1, ~0U, 0);
  const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int fd = 0; fd < kAsked; ++fd) (void)::syscall(SYS_dup3, nothing, fd, 0);
  (void)::syscall(SYS_close, nothing);
  for (;;) {
    Request request;
    std::array<File, kMostPassed> files;
    const ssize_t n =
        take_passed(kAsked, {reinterpret_cast<std::byte*>(&request), sizeof request}, files);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    if (n == sizeof request && files[1]) answer_one(request, files);
  }
  const Library* library = Library::existing();
  while (library != nullptr && !library->drained()) {
    std::this_thread::sleep_for(std::chrono::milliseconds{100});
  }
  (void)::syscall(SYS_exit_group, 0);
  __builtin_unreachable();
}

// ---- the program

// The program is to know nothing of a child that is not its own. So that is one's child that has
// ended already, and the signal that says so is taken away.
class NoChild {
 public:
  NoChild() {
    (void)sigemptyset(&child_);
    (void)sigaddset(&child_, SIGCHLD);
    (void)::pthread_sigmask(SIG_BLOCK, &child_, &before_);
    sigset_t pending;
    (void)::sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGCHLD) == 1;
  }
  NoChild(const NoChild&) = delete;
  NoChild& operator=(const NoChild&) = delete;
  ~NoChild() {
    constexpr timespec kAtOnce{};
    if (!was_pending_) (void)::sigtimedwait(&child_, nullptr, &kAtOnce);
    (void)::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

 private:
  sigset_t child_;
  sigset_t before_;
  bool was_pending_ = false;
};

// With the lock.
bool start() {
  std::array<int, 2> pair{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair.data()) != 0) return false;
  File own = out_of_the_way(File{pair[0]});
  const File other{pair[1]};
  const NoChild no_child;
  const pid_t child = ::fork();
  if (child == 0) {
    own.reset();
    if (::fork() == 0) keep(other.get());
    (void)::syscall(SYS_exit_group, 0);
  }
  if (child < 0) return false;
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  g_keeper = std::move(own);
  return true;
}

bool ask(const Request& request, int fd, const File& answer) {
  return pass(g_keeper.get(), {reinterpret_cast<const std::byte*>(&request), sizeof request},
              {fd, answer.get()});
}

}  // namespace

std::optional<Library::Tried> Keeper::connect(int fd, const Address& to, bool remember) {
  std::array<int, 2> pair{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair.data()) != 0)
    return std::nullopt;
  const File here{pair[0]};
  File there{pair[1]};
  const Request request{to, remember};
  {
    const std::lock_guard lock{g_lock};
    // The program may have closed the socket, with all that it did not know of.
    const bool asked = g_keeper && ask(request, fd, there);
    if (!asked && !(start() && ask(request, fd, there))) return std::nullopt;
  }
  there.reset();
  const auto before = cookie_of(fd);
  Answer answer;
  std::array<File, kMostPassed> files;
  ssize_t n = 0;
  do {
    n = take_passed(here.get(), {reinterpret_cast<std::byte*>(&answer), sizeof answer}, files);
  } while (n < 0 && errno == EINTR);
  if (cookie_of(fd) != before) return Library::Tried{Library::Outcome::lost};
  if (n != sizeof answer) return Library::Tried{Library::Outcome::tcp, Fallback::local};
  if (!files[0]) return Library::Tried{Library::Outcome::tcp, answer.why};
  const bool does_not_block = (::syscall(SYS_fcntl, fd, F_GETFL, 0) & O_NONBLOCK) != 0;
  (void)Registrations::take_out(fd);
  const bool placed = put_in_place(files[0], fd);
  Registrations::put_back(fd);
  if (!placed) return Library::Tried{Library::Outcome::tcp, Fallback::local};
  Registrations::end(fd);
  return Library::Tried{does_not_block ? Library::Outcome::in_progress
                                       : Library::Outcome::connected};
}

void Keeper::go_on_in_child() {
  new (&g_lock) Mutex;
}

}  // namespace weft::sdp
