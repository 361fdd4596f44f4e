// Other programs that get this one's descriptors. A child of fork() gets them relayed; one of
// vfork() or posix_spawn(), which is not announced, here.
#include <spawn.h>
#include <unistd.h>

#include "sdp/preload/caller.h"
#include "sdp/preload/next.h"
#include "sdp/sockets/stream.h"
#include "sdp/sockets/table.h"

using weft::sdp::Table;

namespace {

void about_to_execute() {
  if (Table::in_borrowed_memory()) Table::relay_what_is_inherited();
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
  if (const auto stream = Table::find(from)) stream->relay_from_now(from);
  return WEFT_SDP_NEXT(posix_spawn_file_actions_adddup2)(actions, from, to);
}
