// A program that closes all descriptors but those that it knows, as daemons do: its listener and
// its connections go on, so do those that it makes later, and a process that it makes. Prints the
// same by TCP and by SDP.
//
//   sdp_swept ADDRESS [low]
//
// `low`: under a limit that leaves the adapter low numbers; dup2 is left out.

#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <set>
#include <string_view>
#include <vector>

#include "tests/sdp/ends.h"

namespace {

// More than one message holds.
constexpr size_t kMuch = 200'000;

std::vector<char> pattern(size_t size, unsigned seed) {
  std::vector<char> bytes(size);
  for (size_t i = 0; i < size; ++i) {
    bytes[i] = static_cast<char>((i + seed) * 2654435761U >> 13);
  }
  return bytes;
}

bool goes(int from, int to, unsigned seed) {
  const auto bytes = pattern(kMuch, seed);
  std::vector<char> into(bytes.size());
  std::thread sender{[&] { (void)send(from, bytes.data(), bytes.size(), 0); }};
  const ssize_t n = recv(to, into.data(), into.size(), MSG_WAITALL);
  sender.join();
  return n == static_cast<ssize_t>(kMuch) && into == bytes;
}

const char* both_ways(const Ends& ends, unsigned seed) {
  return goes(ends.client, ends.server, seed) && goes(ends.server, ends.client, seed + 1)
             ? "as sent"
             : "not as sent";
}

std::set<int> open_descriptors() {
  std::set<int> found;
  for (const auto& entry : std::filesystem::directory_iterator{"/proc/self/fd"}) {
    found.insert(std::stoi(entry.path().filename().string()));
  }
  return found;
}

using Known = std::set<int>;

// Of [first, last], less what is known, piece by piece.
template <class Close>
void in_pieces(const Known& known, Close close_piece) {
  unsigned first = 0;
  for (const int fd : known) {
    const auto number = static_cast<unsigned>(fd);
    if (number > first) close_piece(first, number - 1);
    first = number + 1;
  }
  close_piece(first, ~0U);
}

void sweep(std::string_view way, const Known& known) {
  if (way == "close_range") {
    in_pieces(known, [](unsigned first, unsigned last) {
      must(close_range(first, last, 0) == 0, "close_range");
    });
  } else if (way == "system call of ranges") {
    in_pieces(known, [](unsigned first, unsigned last) {
      must(::syscall(SYS_close_range, first, last, 0) == 0, "close_range");
    });
  } else if (way == "closefrom") {
    closefrom(*known.rbegin() + 1);
  } else {
    const int end = *open_descriptors().rbegin() + 1;
    for (int fd = 0; fd < end; ++fd) {
      if (known.contains(fd)) continue;
      // To this program all of these are numbers that are not in use, but for what lists them.
      const bool by_number = way == "system call";
      const long result = by_number ? ::syscall(SYS_close, fd) : close(fd);
      must(result == 0 || errno == EBADF, "close");
    }
  }
}

// Asks a child that the program makes behind it.
int child_answers(const Ends& ends) {
  const pid_t child = fork();
  if (child == 0) {
    // Its copies of what others have are its own to close.
    closefrom(std::max(ends.client, ends.server) + 1);
    std::array<char, 5> bytes{};
    const bool good = recv(ends.server, bytes.data(), bytes.size(), MSG_WAITALL) == 5 &&
                      send(ends.server, bytes.data(), bytes.size(), 0) == 5;
    _exit(good ? 0 : 1);
  }
  std::array<char, 5> bytes{};
  must(send(ends.client, "hello", 5, 0) == 5, "send");
  must(recv(ends.client, bytes.data(), bytes.size(), MSG_WAITALL) == 5, "recv");
  int status = 0;
  must(waitpid(child, &status, 0) == child, "waitpid");
  return status;
}

void sweeps(const char* address, std::string_view way) {
  const Listener listener = listener_at(address);
  const Ends ends = next_connection_to(listener);
  const Known known{0, 1, 2, listener.fd, ends.client, ends.server};
  sweep(way, known);
  std::printf("%s: a connection %s", way.data(), both_ways(ends, 1));
  const Ends later = next_connection_to(listener);
  std::printf(", one of the listener %s", both_ways(later, 2));
  const Ends other = connection(address);
  std::printf(", one of another %s", both_ways(other, 3));
  std::printf(", child %d\n", child_answers(other));
  for (const Ends& each : {ends, later, other}) {
    (void)close(each.client);
    char byte = 0;
    must(recv(each.server, &byte, 1, 0) == 0, "the end");
    (void)close(each.server);
  }
  (void)close(listener.fd);
}

// A number that the program was never given: dup2(2) takes none of the library's away.
void puts_files_everywhere(const char* address) {
  const Known inherited = open_descriptors();
  const Ends ends = connection(address);
  const int file = open("/dev/null", O_RDWR | O_CLOEXEC);
  int taken = 0;
  for (const int fd : open_descriptors()) {
    if (inherited.contains(fd) || fd == file || fd == ends.client || fd == ends.server) continue;
    if (fcntl(fd, F_GETFD) < 0) continue;  // what has listed them
    if (dup2(file, fd) == fd) ++taken;
    if (dup3(file, fd, O_CLOEXEC) == fd) ++taken;
    if (::syscall(SYS_dup3, file, fd, O_CLOEXEC) == fd) ++taken;
  }
  std::printf("dup2: %d taken, a connection %s\n", taken, both_ways(ends, 4));
}

// The numbers of a closed connection are the program's, whatever had them before.
void uses_all_numbers(const char* address) {
  for (int i = 0; i < 20; ++i) {
    const Ends ends = connection(address);
    must(goes(ends.client, ends.server, 5), "a connection");
    (void)close(ends.client);
    (void)close(ends.server);
  }
  std::array<int, 200> files{};
  int closed = 0;
  for (int& fd : files) fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
  for (const int fd : files) closed += close(fd) == 0 ? 1 : 0;
  std::printf("files: %d of %zu closed\n", closed, files.size());
}

}  // namespace

int main(int arguments, char** argument) {
  if (arguments != 2 && arguments != 3) return 2;
  // Each in a process of its own: a sweep may take what the next one would need.
  for (const char* way :
       {"close", "system call", "close_range", "system call of ranges", "closefrom"}) {
    std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
      sweeps(argument[1], way);
      std::exit(0);
    }
    int status = 0;
    must(waitpid(child, &status, 0) == child && status == 0, way);
  }
  if (arguments == 2) puts_files_everywhere(argument[1]);
  uses_all_numbers(argument[1]);
  return 0;
}
