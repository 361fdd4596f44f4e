// What becomes of a socket of streams: rdma_cm's steps to a connection, and the connection.
#pragma once

#include <sys/socket.h>

#include <optional>

#include "abi/rsockets/cm_end.h"
#include "abi/rsockets/connection.h"
#include "abi/rsockets/settings.h"

namespace weft::rsockets {

// One user at a time, but for fd(). Nothing here waits. Functions return 0 or an errno value,
// unless they say otherwise.
class Link {
 public:
  enum class State { idle, bound, listening, resolving, connecting, accepting, connected, failed };

  explicit Link(int family) : family_(family) {}

  int open() { return cm_.open(); }
  // From open() on. Readable when drive() or next_request() has something to do, until it is
  // connected.
  int fd() const { return cm_.fd(); }

  int bind(const sockaddr* address, const Settings& settings);
  int listen(int backlog);
  // Begins to connect. drive() leads on.
  int connect(const sockaddr* address, const Settings& settings);
  // The next request of a listener, if there is one; `request` in it is the caller's.
  std::optional<CmEnd::Event> next_request();
  // Takes a request over and accepts it, or rejects it; in place of open().
  int accept(rdma_cm_id* request, const std::optional<ConnectData>& peer, const Settings& settings);

  // They have changed. Before and during a connection.
  int take_keepalive(const Settings& settings) { return cm_.keep_alive(settings.keepalive()); }

  // Takes what has come. Whether anything came.
  bool drive(const Settings& settings);

  State state() const { return state_; }
  bool is_opening() const {
    return state_ == State::resolving || state_ == State::connecting || state_ == State::accepting;
  }
  bool is_connected() const { return state_ == State::connected; }
  bool has_failed() const { return state_ == State::failed; }
  // From is_connected() on.
  Connection& connection() { return *connection_; }
  // The error that a program has not been told yet. It is told once, but that of a connection again
  // and again.
  int take_error();
  // POLLIN, POLLOUT, POLLERR and POLLHUP, as poll(2) would tell them now of a socket of which these
  // directions have not been shut down.
  int ready(bool reads, bool writes);
  // The connection, if there is one, is over, and whoever asks is told `error`.
  void end(int error);

  // The addresses of the two sides, as getsockname(2) and getpeername(2) give them.
  int local_name(sockaddr* to, socklen_t* size) const;
  int peer_name(sockaddr* to, socklen_t* size) const;

 private:
  void handle(const CmEnd::Event& event, const Settings& settings);
  int start_connection(const Settings& settings);
  void fail(int error);

  const int family_;
  State state_ = State::idle;
  int error_ = 0;
  CmEnd cm_;
  std::optional<Connection> connection_;
};

}  // namespace weft::rsockets
