// Calls on connections where the process has no memory: each does what it is to do, or says so by
// its errno, and what has been received is what was sent. Prints the same by TCP, which asks for
// none, and by SDP.
//
//   sdp_scarce ADDRESS calls|loop|staging

#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <thread>
#include <vector>

#include "tests/abi/scarcity.h"
#include "tests/sdp/ends.h"

namespace {

// How often memory of the size of a session's staging was refused; -1: it is not.
std::atomic<int> g_refused{-1};

}  // namespace

// The libraries are to find it.
extern "C" [[gnu::visibility("default")]] void* mmap(void* at, size_t size, int protection,
                                                     int flags, int fd, off_t offset) noexcept {
  constexpr size_t kStaging = 256 << 10;
  if (g_refused >= 0 && size == kStaging && fd < 0) {
    ++g_refused;
    errno = ENOMEM;
    return MAP_FAILED;
  }
  return reinterpret_cast<void*>(::syscall(SYS_mmap, at, size, protection, flags, fd, offset));
}

namespace {

using weft::test::one_is_missing;
using weft::test::other_thread;
using weft::test::pieces_left;
using weft::test::pieces_left_there;

// What a call comes to that finds so many pieces of memory.
class Scarcity {
 public:
  explicit Scarcity(long pieces) : pieces_(pieces) {}
  template <class Call>
  auto operator()(const char* name, Call call) {
    one_is_missing = true;
    pieces_left = pieces_;
    const auto result = call();
    const int error = errno;
    missing_ = missing_ || pieces_left < 0;
    pieces_left = -1;
    // One that cannot be finished ends the connection.
    const bool said = error == ENOMEM || error == ENOBUFS || error == ECONNRESET ||
                      error == EPIPE || error == ENOTCONN;
    if (result < 0 && !said) {
      std::printf("%s: %s\n", name, std::strerror(error));
      wrong_ = true;
    }
    return result;
  }
  bool missing() const { return missing_; }
  bool wrong() const { return wrong_; }

 private:
  long pieces_;
  bool missing_ = false;
  bool wrong_ = false;
};

std::array<char, 3000> pattern(long seed) {
  std::array<char, 3000> bytes{};
  for (size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<char>(i * 31 + i / 256 + static_cast<size_t>(seed));
  return bytes;
}

enum class Outcome { goes, ended, wrong };

// Both sides are told of a connection that has ended.
bool says_end(ssize_t n) {
  return n == 0 || (n < 0 && (errno == ECONNRESET || errno == EPIPE));
}

Outcome outcome_of(const Ends& ends, long seed) {
  constexpr ssize_t kSize = 3000;
  const auto sent = pattern(seed);
  auto came = pattern(seed + 1);
  const ssize_t n = send(ends.client, sent.data(), kSize, MSG_NOSIGNAL);
  if (n != kSize) return says_end(n) ? Outcome::ended : Outcome::wrong;
  const ssize_t m = recv(ends.server, came.data(), kSize, MSG_WAITALL);
  if (m != kSize) return says_end(m) ? Outcome::ended : Outcome::wrong;
  return came == sent ? Outcome::goes : Outcome::wrong;
}

bool goes(const Ends& ends, long seed) {
  return outcome_of(ends, seed) == Outcome::goes;
}

void close_both(const Ends& ends) {
  for (const int fd : {ends.client, ends.server}) {
    if (fd >= 0) (void)close(fd);
  }
}

// Whether the listener has it. Else the client is told of its end.
bool comes(const Listener& listener, int client) {
  std::array<pollfd, 2> either{{{listener.fd, POLLIN, 0}, {client, POLLIN, 0}}};
  (void)poll(either.data(), either.size(), -1);
  return either[0].revents != 0;
}

int accepted(const Listener& listener, int client) {
  return comes(listener, client) ? accept(listener.fd, nullptr, nullptr) : -1;
}

// A connection that is made while memory is scarce. Where it is, the other side has one, or sees
// its end.
void makes(const char* address, Scarcity& scarce, long seed) {
  const Listener listener = listener_at(address);
  Ends ends;
  ends.client = scarce("socket", [] { return socket(AF_INET, SOCK_STREAM, 0); });
  const auto* at = reinterpret_cast<const sockaddr*>(&listener.at);
  if (ends.client < 0) return;
  if (scarce("connect", [&] { return connect(ends.client, at, sizeof listener.at); }) != 0) {
    close_both(ends);
    (void)close(listener.fd);
    return;
  }
  if (comes(listener, ends.client)) {
    ends.server = scarce("accept", [&] { return accept(listener.fd, nullptr, nullptr); });
  }
  if (ends.server >= 0 && outcome_of(ends, seed) == Outcome::wrong)
    std::printf("made with want: wrong\n");
  close_both(ends);
  (void)close(listener.fd);
}

// Calls on one that is there. What one of them has taken is not looked for.
void uses(const char* address, Scarcity& scarce, long seed) {
  const Ends ends = connection(address);
  const int epoll = epoll_create1(0);
  const int one = 1;
  const int size = 1 << 16;
  epoll_event event{};
  event.events = EPOLLIN | EPOLLPRI;
  auto sent = pattern(seed);
  auto came = pattern(seed + 1);
  pollfd polled{ends.server, POLLIN | POLLPRI, 0};
  iovec piece{sent.data(), 1000};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  scarce("epoll_ctl", [&] { return epoll_ctl(epoll, EPOLL_CTL_ADD, ends.server, &event); });
  scarce("setsockopt",
         [&] { return setsockopt(ends.client, SOL_SOCKET, SO_ZEROCOPY, &one, sizeof one); });
  scarce("setsockopt",
         [&] { return setsockopt(ends.server, SOL_SOCKET, SO_RCVBUF, &size, sizeof size); });
  const ssize_t n =
      scarce("send", [&] { return send(ends.client, sent.data(), 1000, MSG_NOSIGNAL); });
  const ssize_t m =
      n == 1000
          ? scarce("sendmsg",
                   [&] { return sendmsg(ends.client, &message, MSG_ZEROCOPY | MSG_NOSIGNAL); })
          : -1;
  scarce("poll", [&] { return poll(&polled, 1, 0); });
  scarce("peek", [&] {
    return recv(ends.server, came.data(), 100, MSG_PEEK | MSG_DONTWAIT) >= 0 || errno == EAGAIN
               ? 0
               : -1;
  });
  const ssize_t got =
      n > 0 ? scarce("recv", [&] { return recv(ends.server, came.data(), 1000, MSG_WAITALL); })
            : -1;
  if (got > 0 && std::memcmp(came.data(), sent.data(), static_cast<size_t>(got)) != 0)
    std::printf("received something else\n");
  if (m == 1000 && got == 1000) {
    const ssize_t more = recv(ends.server, came.data(), 1000, MSG_WAITALL);
    if (more >= 0 && (more != 1000 || std::memcmp(came.data(), sent.data(), 1000) != 0))
      std::printf("the next bytes are others\n");
  }
  scarce("send of urgent data", [&] { return send(ends.client, "u", 1, MSG_OOB | MSG_NOSIGNAL); });
  scarce("getsockname", [&] {
    sockaddr_in at{};
    socklen_t room = sizeof at;
    return getsockname(ends.client, reinterpret_cast<sockaddr*>(&at), &room);
  });
  const int copy = scarce("dup", [&] { return dup(ends.client); });
  if (copy >= 0) scarce("close", [&] { return close(copy); });
  scarce("shutdown", [&] { return shutdown(ends.server, SHUT_WR); });
  scarce("close", [&] { return close(ends.client); });
  scarce("close", [&] { return close(ends.server); });
  (void)close(epoll);
}

// One that another process gets, too.
void relays(const char* address, Scarcity& scarce, long seed) {
  const Ends ends = connection(address);
  FILE* file = nullptr;
  scarce("fdopen", [&] { return (file = fdopen(ends.client, "r+")) != nullptr ? 0 : -1; });
  if (file != nullptr && !goes(ends, seed))
    std::printf("given to stdio with want, and does not go\n");
  if (file == nullptr) close_both(ends);
  if (file != nullptr) (void)std::fclose(file), (void)close(ends.server);
}

void calls(const char* address) {
  for (const auto scene : {makes, uses, relays}) {
    bool missing = true;
    bool wrong = false;
    for (long pieces = 0; missing && pieces < 200; ++pieces) {
      Scarcity scarce{pieces};
      scene(address, scarce, pieces);
      missing = scarce.missing();
      wrong = wrong || scarce.wrong();
    }
    const Ends ends = connection(address);
    std::printf("%s: %s\n", wrong ? "wrong" : "said", goes(ends, 7) ? "goes on" : "is over");
    close_both(ends);
  }
}

// A connection from its beginning to its end. False: it does not come so far. `begin` is called
// when there is a listener.
template <class Begin>
bool whole(const char* address, long seed, Begin begin) {
  const Listener listener = listener_at(address);
  begin();
  Ends ends;
  ends.client = socket(AF_INET, SOCK_STREAM, 0);
  const auto* at = reinterpret_cast<const sockaddr*>(&listener.at);
  bool good = connect(ends.client, at, sizeof listener.at) == 0;
  if (good) ends.server = accepted(listener, ends.client);
  good = ends.server >= 0 && goes(ends, seed);
  // The second half is a relay's.
  const int copy = good ? dup(ends.server) : -1;
  FILE* file = copy >= 0 ? fdopen(copy, "r+") : nullptr;
  good = file != nullptr && goes(ends, seed + 2) && goes({ends.server, ends.client}, seed + 3);
  if (file != nullptr) (void)std::fclose(file);
  if (file == nullptr && copy >= 0) (void)close(copy);
  close_both(ends);
  (void)close(listener.fd);
  return good;
}

void loop(const char* address) {
  const auto nothing = [] {};
  std::printf("first: %s\n", whole(address, 1, nothing) ? "goes" : "is over");
  const long thread = thread_of_library();
  bool missing = thread != 0;
  for (long pieces = 0; missing && pieces < 300; ++pieces) {
    (void)whole(address, pieces, [&] {
      pieces_left_there = pieces;
      other_thread = thread;
    });
    missing = pieces_left_there < 0;
    other_thread = 0;
  }
  std::printf("then: %s\n", whole(address, 2, nothing) ? "goes" : "is over");
}

// What the peer offers where it lies comes by messages.
void staging(const char* address) {
  const Ends ends = connection(address);
  std::vector<char> sent(200'000);
  for (size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<char>(i * 7 + i / 251);
  g_refused = 0;
  std::thread sender{[&] {
    const ssize_t n = send(ends.client, sent.data(), sent.size(), 0);
    must(n == static_cast<ssize_t>(sent.size()), "send");
    (void)shutdown(ends.client, SHUT_WR);
  }};
  std::vector<char> came;
  std::array<char, 1000> piece{};
  pollfd polled{ends.server, POLLIN, 0};
  for (;;) {
    (void)poll(&polled, 1, -1);
    const ssize_t n = recv(ends.server, piece.data(), piece.size(), 0);
    must(n >= 0, "recv");
    if (n == 0) break;
    came.insert(came.end(), piece.begin(), piece.begin() + n);
  }
  sender.join();
  std::printf("staging: %s\n", came == sent ? "all has come" : "something else has come");
  // By SDP it has to have been asked for.
  if (thread_of_library() != 0 && g_refused == 0) std::printf("staging: not asked for\n");
  g_refused = -1;
  close_both(ends);
}

}  // namespace

int main(int arguments, char** argument) {
  if (arguments != 3) return 2;
  (void)std::setvbuf(stdout, nullptr, _IOLBF, 0);
  if (std::string_view{argument[2]} == "calls") calls(argument[1]);
  if (std::string_view{argument[2]} == "loop") loop(argument[1]);
  if (std::string_view{argument[2]} == "staging") staging(argument[1]);
  return 0;
}
