// The library in this process: its thread, its adapter, and what stands on them. A child of fork()
// begins anew. Sockets change their kind here: connecting.h makes connections, accept_queue.h has
// those that come, connections.h those that the program has.
#pragma once

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <list>
#include <memory>
#include <optional>

#include "sdp/loop/loop.h"
#include "sdp/rdma/fabric.h"
#include "sdp/sockets/accept_queue.h"
#include "sdp/sockets/connecting.h"
#include "sdp/sockets/connections.h"
#include "sdp/sockets/relay.h"

namespace weft::sdp {

class Library {
 public:
  // The one of this process, made at the first call. Nothing where there is no adapter.
  static Library* get();
  // The same, if it was made before.
  static Library* existing();
  // The same where it is the caller's process's, and the caller may wait for its thread.
  static Library* of_caller();

  // What became of a try to connect `fd`. `in_progress`: it is connected, but a program that does
  // not block expects to be told so later. `tcp`: it goes on as if nothing had been. `left`: so it
  // does, but the call ends with `error`, for a handler ended it, or a time limit.
  // `lost`: the program has closed `fd` meanwhile.
  enum class Outcome : uint8_t { connected, in_progress, tcp, left, lost };
  struct Tried {
    Outcome outcome = Outcome::tcp;
    Fallback why = Fallback::none;  // of TCP
    int error = 0;
  };
  // `remember`: what was not there a moment ago is not tried.
  Tried connect(int fd, const Address& to, bool remember);
  // The same for another process, whose `socket` is to be connected: the end of a mirror that is
  // relayed from the beginning. The socket stays until the connection has ended.
  struct Kept {
    File connection;
    Fallback why = Fallback::none;
  };
  Kept connect_and_keep(File socket, const Address& to, bool remember);
  // Nothing is left that this process has to do for connections.
  bool drained() const;
  // The same of what was sent until now, also on connections that are open.
  bool all_sent();
  // Connections that the program has not accepted.
  void give_up_unaccepted();
  // What connect(2) of a connected socket says: 0 once if it was told to wait, or EISCONN. Nothing
  // for a socket that is none of the library's.
  std::optional<int> connect_again(int fd) { return connections_.connect_again(fd); }
  bool disconnect(int fd) { return connections_.disconnect(fd); }
  // `fd` listens; from now on it is also for peers that come by SDP. Nothing, with errno, if it
  // cannot be: EADDRNOTAVAIL where no port of SDP stands beside its own.
  using Hearing = Fabric::Listener;
  Hearing* listen(int fd, int backlog);
  // No more, for `fd` is closed.
  void stop_listening(Hearing* hearing);
  // Until the loop's thread is through with what it does.
  void await_loop() {
    on_loop([] {});
  }
  // It does nothing as long as there is one.
  std::unique_ptr<Loop::Rest> rest_loop(std::chrono::milliseconds most_until_then) {
    return std::make_unique<Loop::Rest>(loop_, most_until_then);
  }
  // On the loop's thread, where listen() and stop_listening() may be called, too.
  void later(int milliseconds, Loop::Task task);
  // `fd` was accepted just now. If it is a wake-up connection, the one by SDP takes its
  // place, and its peer is returned.
  std::optional<Address> accepted(int fd);
  // The connection that `fd` is a descriptor of, if it is one of the library's.
  std::optional<Names> names(int fd) const { return connections_.names(fd); }
  bool has_connections() const { return connections_.any(); }

 private:
  Library(Loop& loop, std::unique_ptr<Fabric> fabric);
  void on_loop(const Loop::Task& task);
  static void catch_up();
  Tried put_in_place_of(int fd, const Address& to, const Connecting::Made& made);

  Loop& loop_;
  const int process_ = ::getpid();  // whose connections they are
  const std::unique_ptr<Fabric> fabric_;
  Connecting connecting_;
  AcceptQueue accept_queue_;
  Connections connections_;
  struct KeptRelay {
    File socket;
    std::unique_ptr<Relay> relay;
  };
  std::list<KeptRelay> kept_;  // the loop's
  std::atomic<size_t> count_kept_{0};
};

}  // namespace weft::sdp
