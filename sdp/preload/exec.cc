// Other programs that get this one's descriptors, or take its place. A child of fork() gets them
// relayed; one of vfork() or posix_spawn(), which is not announced, here.
#include <alloca.h>
#include <spawn.h>
#include <unistd.h>

#include <cstdarg>
#include <cstddef>
#include <cstdio>
#include <cstdlib>

#include "sdp/preload/caller.h"
#include "sdp/preload/exec.h"
#include "sdp/preload/next.h"
#include "sdp/sockets/last_bytes.h"
#include "sdp/sockets/table.h"

using weft::sdp::about_to_execute;
using weft::sdp::Table;

void weft::sdp::about_to_execute() {
  if (Table::in_borrowed_memory()) return Table::relay_what_is_inherited();
  await_bytes_so_far();
}

namespace {

// Of `first` and what comes in `more` up to a null pointer, as execv(3) wants them. On the stack,
// as libc has them: memory that a child of vfork() takes would be lost to its parent.
template <class Execute>
int execute_with(const char* first, va_list& more, Execute execute) {
  va_list counted;
  va_copy(counted, more);
  size_t count = 0;
  for (const char* i = first; i != nullptr; i = va_arg(counted, const char*)) ++count;
  va_end(counted);
  auto** const all = static_cast<char**>(alloca((count + 1) * sizeof(char*)));
  all[0] = const_cast<char*>(first);
  for (size_t i = 1; i <= count; ++i) all[i] = va_arg(more, char*);
  return execute(all);
}

}  // namespace

WEFT_SDP_EXPORT int execve(const char* path, char* const* arguments,
                           char* const* environment) noexcept {
  about_to_execute();
  return WEFT_SDP_NEXT(execve)(path, arguments, environment);
}

WEFT_SDP_EXPORT int execv(const char* path, char* const* arguments) noexcept {
  about_to_execute();
  return WEFT_SDP_NEXT(execv)(path, arguments);
}

WEFT_SDP_EXPORT int execvp(const char* file, char* const* arguments) noexcept {
  about_to_execute();
  return WEFT_SDP_NEXT(execvp)(file, arguments);
}

WEFT_SDP_EXPORT int execvpe(const char* file, char* const* arguments,
                            char* const* environment) noexcept {
  about_to_execute();
  return WEFT_SDP_NEXT(execvpe)(file, arguments, environment);
}

WEFT_SDP_EXPORT int fexecve(int fd, char* const* arguments, char* const* environment) noexcept {
  about_to_execute();
  return WEFT_SDP_NEXT(fexecve)(fd, arguments, environment);
}

WEFT_SDP_EXPORT int execveat(int folder, const char* path, char* const* arguments,
                             char* const* environment, int flags) noexcept {
  about_to_execute();
  return WEFT_SDP_NEXT(execveat)(folder, path, arguments, environment, flags);
}

// libc's own of these call its execve() past this library's.
WEFT_SDP_EXPORT int execl(const char* path, const char* first, ...) noexcept {
  about_to_execute();
  va_list more;
  va_start(more, first);
  const int result = execute_with(
      first, more, [&](char** arguments) { return WEFT_SDP_NEXT(execv)(path, arguments); });
  va_end(more);
  return result;
}

WEFT_SDP_EXPORT int execlp(const char* file, const char* first, ...) noexcept {
  about_to_execute();
  va_list more;
  va_start(more, first);
  const int result = execute_with(
      first, more, [&](char** arguments) { return WEFT_SDP_NEXT(execvp)(file, arguments); });
  va_end(more);
  return result;
}

// The environment is behind the null pointer.
WEFT_SDP_EXPORT int execle(const char* path, const char* first, ...) noexcept {
  about_to_execute();
  va_list more;
  va_start(more, first);
  const int result = execute_with(first, more, [&](char** arguments) {
    return WEFT_SDP_NEXT(execve)(path, arguments, va_arg(more, char**));
  });
  va_end(more);
  return result;
}

WEFT_SDP_EXPORT int posix_spawn(pid_t* pid, const char* path,
                                const posix_spawn_file_actions_t* actions,
                                const posix_spawnattr_t* attributes, char* const* arguments,
                                char* const* environment) {
  Table::relay_what_is_inherited();
  return WEFT_SDP_NEXT(posix_spawn)(pid, path, actions, attributes, arguments, environment);
}

WEFT_SDP_EXPORT int posix_spawnp(pid_t* pid, const char* file,
                                 const posix_spawn_file_actions_t* actions,
                                 const posix_spawnattr_t* attributes, char* const* arguments,
                                 char* const* environment) {
  Table::relay_what_is_inherited();
  return WEFT_SDP_NEXT(posix_spawnp)(pid, file, actions, attributes, arguments, environment);
}

WEFT_SDP_EXPORT int posix_spawn_file_actions_adddup2(posix_spawn_file_actions_t* actions, int from,
                                                     int to) noexcept {
  Table::relay(from);
  return WEFT_SDP_NEXT(posix_spawn_file_actions_adddup2)(actions, from, to);
}

// libc's own of these call its posix_spawn() past this library's.
WEFT_SDP_EXPORT int system(const char* command) {
  Table::relay_what_is_inherited();
  return WEFT_SDP_NEXT(system)(command);
}

WEFT_SDP_EXPORT FILE* popen(const char* command, const char* mode) {
  Table::relay_what_is_inherited();
  return WEFT_SDP_NEXT(popen)(command, mode);
}
