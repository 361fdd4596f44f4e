// Bytes that libc moves by calls of its own, which nobody stands in front of, or that a program
// moves by syscall(2). Each comes to the other end. Prints the same by TCP and by SDP.
//
//   sdp_by_libc ADDRESS

#include <aio.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstring>
#include <string>

#include "tests/sdp/ends.h"

extern "C" int __dprintf_chk(int fd, int flag, const char* format, ...);
extern "C" int __vdprintf_chk(int fd, int flag, const char* format, va_list arguments);

namespace {

// What comes until the end.
std::string all_of(int fd) {
  std::string all;
  std::array<char, 1000> bytes{};
  for (ssize_t n = 0; (n = recv(fd, bytes.data(), bytes.size(), 0)) > 0;) {
    all.append(bytes.data(), static_cast<size_t>(n));
  }
  return all;
}

// Prints what `say` brings from one end to the other.
template <class Say>
void said(const char* address, const char* name, Say say) {
  const Ends ends = connection(address);
  const int result = say(ends.client);
  (void)shutdown(ends.client, SHUT_WR);
  const std::string came = all_of(ends.server);
  std::printf("%s: %d, '%s'\n", name, result, came.c_str());
  (void)close(ends.client);
  (void)close(ends.server);
}

int by_list(int fd, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int n = vdprintf(fd, format, arguments);
  va_end(arguments);
  return n;
}

int by_checked_list(int fd, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int n = __vdprintf_chk(fd, 1, format, arguments);
  va_end(arguments);
  return n;
}

void format(const char* address) {
  said(address, "dprintf", [](int fd) { return dprintf(fd, "%s %d", "formatted", 17); });
  said(address, "vdprintf", [](int fd) { return by_list(fd, "%s %d", "by a list", 18); });
  said(address, "checked", [](int fd) { return __dprintf_chk(fd, 1, "%s %d", "checked", 19); });
  said(address, "both", [](int fd) { return by_checked_list(fd, "%s %d", "list", 20); });
  said(address, "dprintf behind others", [](int fd) {
    return static_cast<int>(send(fd, "sent, ", 6, 0)) + dprintf(fd, "formatted") +
           static_cast<int>(send(fd, ", sent", 6, 0));
  });
}

// While `does` runs, `fd` is `number` as well.
template <class Does>
int with_number(int fd, int number, Does does) {
  (void)std::fflush(stdout);
  const int saved = dup(number);
  must(saved >= 0 && dup2(fd, number) == number, "dup2");
  const int result = does();
  (void)std::fflush(stdout);
  must(dup2(saved, number) == number, "dup2");
  (void)close(saved);
  return result;
}

void print_to_standard_files(const char* address) {
  const auto as = [](int number, auto does) {
    return [=](int fd) { return with_number(fd, number, does); };
  };
  said(address, "printf", as(STDOUT_FILENO, [] { return std::printf("by stdio"); }));
  said(address, "perror", as(STDERR_FILENO, [] {
         errno = ENOENT;
         std::perror("by perror");
         return 0;
       }));
  said(address, "psignal", as(STDERR_FILENO, [] {
         psignal(SIGINT, "by psignal");
         return 0;
       }));
  said(address, "system", as(STDOUT_FILENO, [] { return std::system("echo by a shell"); }));
  said(address, "popen", as(STDOUT_FILENO, [] {
         FILE* const pipe = popen("cat", "w");
         must(pipe != nullptr && std::fputs("by a pipe", pipe) >= 0, "popen");
         return pclose(pipe);
       }));
  said(address, "posix_spawn", as(STDOUT_FILENO, [] {
         std::array<char*, 3> all{const_cast<char*>("echo"), const_cast<char*>("by a program"),
                                  nullptr};
         pid_t child = 0;
         int status = 0;
         must(posix_spawnp(&child, "echo", nullptr, nullptr, all.data(), environ) == 0, "spawn");
         must(waitpid(child, &status, 0) == child, "waitpid");
         return status;
       }));
}

void start_programs(const char* address) {
  const auto redirected = [](int fd) { return " >&" + std::to_string(fd); };
  said(address, "system with a number",
       [&](int fd) { return std::system(("echo said by a shell" + redirected(fd)).c_str()); });
  said(address, "popen with a number", [&](int fd) {
    FILE* const pipe = popen(("cat" + redirected(fd)).c_str(), "w");
    must(pipe != nullptr && std::fputs("said by a pipe", pipe) >= 0, "popen");
    return pclose(pipe);
  });
}

// The lowest number that is free is the standard input's.
void read_standard_input(const char* address) {
  for (const bool accepted : {true, false}) {
    const Listener listener = listener_at(address);
    const auto* at = reinterpret_cast<const sockaddr*>(&listener.at);
    if (!accepted) (void)close(STDIN_FILENO);
    const int client = socket(AF_INET, SOCK_STREAM, 0);
    must(connect(client, at, sizeof listener.at) == 0, "connect");
    if (accepted) (void)close(STDIN_FILENO);
    const int server = accept(listener.fd, nullptr, nullptr);
    const int other = accepted ? client : server;
    must(send(other, "first\nsecond\n", 13, 0) == 13 && shutdown(other, SHUT_WR) == 0, "send");
    std::array<char, 100> line{};
    for (int i = 0; i < 3; ++i) {
      const bool got = std::fgets(line.data(), line.size(), stdin) != nullptr;
      std::printf("%d, standard input: %s", accepted ? server : client,
                  got ? line.data() : "end\n");
    }
    std::clearerr(stdin);
    for (const int fd : {client, server, listener.fd}) (void)close(fd);
    must(open("/dev/null", O_RDONLY) == STDIN_FILENO, "open");
  }
}

void print_error(const char* name, ssize_t n) {
  std::printf("%s: %zd%s%s\n", name, n, n < 0 ? ", " : "", n < 0 ? std::strerror(errno) : "");
}

void move_with_flags(const char* address) {
  constexpr int kUnknown = 1 << 30;
  const Ends ends = connection(address);
  char text[] = "abcdefghij";
  std::array<char, sizeof text> bytes{};
  const std::array<iovec, 2> from{{{text, 3}, {text + 3, 4}}};
  const std::array<iovec, 2> to{{{bytes.data(), 2}, {bytes.data() + 2, 5}}};
  print_error("none", preadv2(ends.server, to.data(), 2, -1, RWF_NOWAIT));
  print_error("with a place", pwritev2(ends.client, from.data(), 2, 7, 0));
  print_error("from a place", preadv2(ends.server, to.data(), 2, 7, 0));
  print_error("of nothing", preadv2(ends.server, to.data(), 0, -1, 0));
  print_error("pwritev2", pwritev2(ends.client, from.data(), 2, -1, 0));
  print_error("preadv2", preadv2(ends.server, to.data(), 2, -1, 0));
  std::printf("%s\n", bytes.data());
  print_error("pwritev64v2", pwritev64v2(ends.client, from.data(), 2, -1, RWF_NOWAIT | RWF_DSYNC));
  print_error("preadv64v2", preadv64v2(ends.server, to.data(), 2, -1, RWF_HIPRI));
  std::printf("%s\n", bytes.data());
  print_error("an unknown flag", pwritev2(ends.client, from.data(), 2, -1, kUnknown));
  print_error("an unknown flag", preadv2(ends.server, to.data(), 2, -1, kUnknown));
  (void)send(ends.client, "more", 4, 0);
  (void)shutdown(ends.client, SHUT_WR);
  std::printf("then: %s\n", all_of(ends.server).c_str());
}

ssize_t outcome(aiocb& block) {
  const std::array<const aiocb*, 1> all{&block};
  while (aio_error(&block) == EINPROGRESS) (void)aio_suspend(all.data(), 1, nullptr);
  return aio_return(&block);
}

aiocb block_of(int fd, char* bytes, size_t size) {
  aiocb block{};
  block.aio_fildes = fd;
  block.aio_buf = bytes;
  block.aio_nbytes = size;
  block.aio_sigevent.sigev_notify = SIGEV_NONE;
  return block;
}

void move_asynchronously(const char* address) {
  char text[] = "asynchronous";
  said(address, "aio_write", [&](int fd) {
    aiocb block = block_of(fd, text, 12);
    must(aio_write(&block) == 0, "aio_write");
    return static_cast<int>(outcome(block));
  });
  said(address, "lio_listio", [&](int fd) {
    aiocb block = block_of(fd, text, 8);
    block.aio_lio_opcode = LIO_WRITE;
    std::array<aiocb*, 2> all{nullptr, &block};
    must(lio_listio(LIO_WAIT, all.data(), 2, nullptr) == 0, "lio_listio");
    return static_cast<int>(outcome(block));
  });
  const Ends ends = connection(address);
  std::array<char, 100> bytes{};
  must(send(ends.client, "for a reader", 12, 0) == 12, "send");
  aiocb block = block_of(ends.server, bytes.data(), bytes.size() - 1);
  must(aio_read(&block) == 0, "aio_read");
  const ssize_t n = outcome(block);
  std::printf("aio_read: %zd, %s\n", n, bytes.data());
}

// Of `call` in one direction, and libc's in the other one.
template <class Call>
void received(const char* address, const char* name, Call call) {
  const Ends ends = connection(address);
  std::array<char, 100> bytes{};
  must(send(ends.client, "received", 8, 0) == 8 && shutdown(ends.client, SHUT_WR) == 0, "send");
  const long n = call(ends.server, bytes.data(), bytes.size() - 1);
  std::printf("%s: %ld, '%s', then: '%s'\n", name, n, bytes.data(), all_of(ends.server).c_str());
  (void)close(ends.client);
  (void)close(ends.server);
}

void call_the_system(const char* address) {
  char text[] = "called";
  iovec piece{text, 6};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  mmsghdr one{};
  one.msg_hdr = message;
  const auto sent = [&](const char* name, auto call) {
    said(address, name, [&](int fd) { return static_cast<int>(call(fd)); });
  };
  sent("SYS_write", [&](int fd) { return ::syscall(SYS_write, fd, text, 6); });
  sent("SYS_writev", [&](int fd) { return ::syscall(SYS_writev, fd, &piece, 1); });
  sent("SYS_sendto", [&](int fd) { return ::syscall(SYS_sendto, fd, text, 6, 0, nullptr, 0); });
  sent("SYS_sendmsg", [&](int fd) { return ::syscall(SYS_sendmsg, fd, &message, 0); });
  sent("SYS_sendmmsg", [&](int fd) { return ::syscall(SYS_sendmmsg, fd, &one, 1, 0); });
  sent("SYS_dup", [&](int fd) {
    const int copy = static_cast<int>(::syscall(SYS_dup, fd));
    const ssize_t n = write(copy, "by a copy", 9);
    (void)close(copy);
    return n;
  });
  received(address, "SYS_read",
           [](int fd, char* to, size_t size) { return ::syscall(SYS_read, fd, to, size); });
  received(address, "SYS_readv", [](int fd, char* to, size_t size) {
    const iovec place{to, size};
    return ::syscall(SYS_readv, fd, &place, 1);
  });
  received(address, "SYS_recvfrom", [](int fd, char* to, size_t size) {
    return ::syscall(SYS_recvfrom, fd, to, size, 0, nullptr, nullptr);
  });
  received(address, "SYS_recvmsg", [](int fd, char* to, size_t size) {
    iovec place{to, size};
    msghdr into{};
    into.msg_iov = &place;
    into.msg_iovlen = 1;
    return ::syscall(SYS_recvmsg, fd, &into, 0);
  });
}

}  // namespace

int main(int arguments, char** argument) {
  if (arguments != 2) return 2;
  (void)std::setvbuf(stdout, nullptr, _IOLBF, 0);
  format(argument[1]);
  print_to_standard_files(argument[1]);
  start_programs(argument[1]);
  read_standard_input(argument[1]);
  move_with_flags(argument[1]);
  move_asynchronously(argument[1]);
  call_the_system(argument[1]);
  return 0;
}
