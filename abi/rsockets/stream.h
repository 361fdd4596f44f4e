// A socket of type SOCK_STREAM: rdma_cm's steps to a connection, the connection, and the program's
// threads that wait for either.
#pragma once

#include <poll.h>
#include <sys/socket.h>

#include <memory>
#include <optional>

#include "abi/rsockets/link.h"
#include "abi/rsockets/mappings.h"
#include "abi/rsockets/settings.h"
#include "abi/rsockets/waiting.h"

namespace weft::rsockets {

// Any number of threads. Functions return 0 or an errno value, unless they say otherwise.
class Stream {
 public:
  explicit Stream(int family) : family_(family), link_(family) {}
  int open() { return link_.open(); }
  // The program's number of this socket, from open() on.
  int fd() const { return link_.fd(); }

  Settings& settings() { return settings_; }
  // As setsockopt(2) and getsockopt(2).
  int set_option(int level, int name, const void* value, socklen_t size);
  int get_option(int level, int name, void* value, socklen_t* size);

  int bind(const sockaddr* address);
  int listen(int backlog);
  // Waits until the connection stands, unless the socket does not block: then EINPROGRESS.
  int connect(const sockaddr* address);
  // The next connection of a listener. Waits for one, unless the socket does not block: then
  // EAGAIN.
  int accept(std::shared_ptr<Stream>& accepted);

  // Bytes that were moved, or an error if there are none. `flags` as of send(2) and recv(2).
  struct Moved {
    size_t bytes = 0;
    int error = 0;
  };
  Moved send(IovCursor from, int flags);
  Moved receive(IovCursor to, int flags);

  // `how` as of shutdown(2). Waits until all that was sent has left.
  int shutdown(int how);
  // The same in both directions, if there is a connection, and ends it. SO_LINGER limits how long
  // that waits; what has not left by then is lost, and the peer is told of no end.
  void close();

  // Which of `wanted` poll(2) would tell now, with POLLERR and POLLHUP.
  short ready(short wanted);
  // The descriptor that becomes readable when ready() may have changed, and the sleeper is woken
  // when another thread changed it. Nothing when it is ready for `wanted` already. disarm() has to
  // follow.
  std::optional<int> arm(short wanted, Sleeper& sleeper);
  void disarm(const Sleeper& sleeper);

  // The addresses of the two sides, as getsockname(2) and getpeername(2) give them.
  int local_name(sockaddr* to, socklen_t* size);
  int peer_name(sockaddr* to, socklen_t* size);
  // riomap(3) and its relatives.
  int map(void* memory, size_t size, bool remote, std::optional<uint64_t> wanted, uint64_t& offset);
  int unmap(void* memory, size_t size);
  Moved write_mapped(IovCursor from, uint64_t offset, int flags);

 private:
  using Lock = Waiting::Lock;

  bool blocks(int flags) const { return !settings_.nonblocking() && (flags & MSG_DONTWAIT) == 0; }
  // Takes what has come, and wakes those who wait for it.
  void drive();
  int await_connection(Lock& lock, int flags);
  // Sends all of `from`: `room` says how much goes at once, `send` does it.
  template <class Room, class Send>
  Moved send_pieces(IovCursor& from, int flags, Room room, Send send);
  int end_directions(Lock& lock, int how, const Deadline& until);
  template <class Done>
  void wait_until(Lock& lock, const Deadline& until, Done done);
  short ready_now(short wanted);

  const int family_;
  Settings settings_;
  Waiting waiting_;
  bool reads_ = true;  // not shut down
  bool writes_ = true;
  bool closed_ = false;  // a call may have found the socket just before
  Link link_;
  Mappings mappings_;
};

}  // namespace weft::rsockets
