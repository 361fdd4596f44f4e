#include "base/log.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>

namespace weft::log {
namespace {
std::atomic<Level> g_level{Level::warn};
constexpr const char* kNames[] = {"", "error", "warning", "info", "debug"};
}  // namespace

void set_level(Level level) {
  g_level.store(level, std::memory_order_relaxed);
}
bool enabled(Level level) {
  return level <= g_level.load(std::memory_order_relaxed);
}

void write(Level level, const char* format, ...) {
  const int caller_errno = errno;
  char line[1024];
  int n = std::snprintf(line, sizeof line, "weft[%d] %s: ", static_cast<int>(getpid()),
                        kNames[static_cast<int>(level)]);
  va_list args;
  va_start(args, format);
  const int m = std::vsnprintf(line + n, sizeof line - static_cast<size_t>(n) - 1, format, args);
  va_end(args);
  if (m < 0) {
    errno = caller_errno;
    return;
  }
  n = n + m < static_cast<int>(sizeof line) - 1 ? n + m : static_cast<int>(sizeof line) - 2;
  line[n++] = '\n';
  // A program without standard error loses the sentence; there is nobody to tell.
  // glibc's write() is a cancellation point, and callers may hold locks.
  [[maybe_unused]] const long ignored =
      ::syscall(SYS_write, STDERR_FILENO, line, static_cast<size_t>(n));
  errno = caller_errno;
}

}  // namespace weft::log
