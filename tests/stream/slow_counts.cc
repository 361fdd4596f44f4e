// To be preloaded: a process that was told to say what it has received gets to it a second later,
// as on a busy machine.

#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <string_view>

extern "C" __attribute__((visibility("default"))) ssize_t send(int fd, const void* bytes,
                                                               size_t size, int flags) {
  const std::string_view text{static_cast<const char*>(bytes), size};
  if (text.starts_with("{\"counts\":")) {
    constexpr std::string_view kSaid = "its counts wait\n";
    (void)!::write(STDERR_FILENO, kSaid.data(), kSaid.size());
    ::sleep(1);
  }
  return ::syscall(SYS_sendto, fd, bytes, size, flags, nullptr, 0);
}
