// The connections of this process that its program has descriptors of: their names, and what
// belongs to them until they end. Any thread; the adapter's threads call this library, too, so that
// none of its locks may be held where a session ends.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "sdp/loop/handlers.h"
#include "sdp/rdma/fabric.h"
#include "sdp/sockets/mirror.h"
#include "sdp/sockets/stream.h"

namespace weft::sdp {

// What a program may ask of a connection that is not the kernel's.
struct Names {
  int shadow = -1;  // answers for options, and for the own name if `own` is not there
  std::optional<Address> own;
  Address peer{};
};

class Connections {
 public:
  Connections(Loop& loop, Fabric& fabric) : loop_(loop), fabric_(fabric) {}
  Connections(const Connections&) = delete;
  Connections& operator=(const Connections&) = delete;

  // `fd` is the other end of `mirror`, and is `session` for the program from now on. `own`: its
  // name, where it has connected; else it was accepted. `in_progress`: the program is told
  // EINPROGRESS.
  std::shared_ptr<Stream> adopt(const std::shared_ptr<Session>& session, Mirror mirror, int fd,
                                const std::optional<Address>& own, const Address& peer,
                                bool in_progress);
  // What connect(2) of a connected socket says: 0 once if it was told to wait, or EISCONN. Nothing
  // for a socket that is none of them.
  std::optional<int> connect_again(int fd);
  // The program gives up the connection of `fd`, whose peer gets a reset: what comes in its place
  // is the TCP socket that it was. False: it is no connection.
  bool disconnect(int fd);
  // Of the one that `fd` is a descriptor of.
  std::optional<Names> names(int fd) const;
  bool any() const { return count_.load(std::memory_order_relaxed) > 0; }
  // The loop's thread: whether one is closed, and has still to give up what was sent on it.
  bool any_ends() const;

 private:
  struct Connection {
    std::shared_ptr<Stream> stream;
    File shadow;
    std::optional<Address> own;
    Address peer{};
    bool in_progress = false;  // the program was told EINPROGRESS, and nothing since
  };
  std::shared_ptr<Stream> add(const std::shared_ptr<Session>& session, Mirror mirror, int fd,
                              const std::optional<Address>& own, const Address& peer,
                              bool in_progress);
  void introduce(const std::shared_ptr<Stream>& stream, const Address& own, const Address& peer);
  void forget(uint64_t cookie);
  std::optional<Connection> take_out(uint64_t cookie);

  Loop& loop_;
  Fabric& fabric_;
  mutable Mutex lock_;
  std::map<uint64_t, Connection> connections_;  // by cookie
  std::multimap<uint16_t, uint64_t> callers_;   // cookies of those that connected, by own port
  std::atomic<size_t> count_{0};
};

}  // namespace weft::sdp
