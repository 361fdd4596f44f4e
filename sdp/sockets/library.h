// What the library knows in this process: its thread, its adapters, its rules, and the sockets that
// are not TCP's. A child of fork() begins anew.
//
// Above 400 lines with its source: a change of a socket's kind goes through all it knows.
#pragma once

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>

#include "sdp/loop/handlers.h"
#include "sdp/rdma/fabric.h"
#include "sdp/rules/load.h"
#include "sdp/rules/log.h"
#include "sdp/sockets/absent.h"
#include "sdp/sockets/awaited.h"
#include "sdp/sockets/door.h"
#include "sdp/sockets/mirror.h"
#include "sdp/sockets/relay.h"
#include "sdp/sockets/stream.h"
#include "sdp/sockets/table.h"
#include "sdp/stat/layout.h"

namespace weft::sdp {

// What a program may ask of a connection that is not the kernel's.
struct Names {
  int shadow = -1;  // answers for options, and for the own name if `own` is not there
  std::optional<Address> own;
  Address peer{};
};

class Library {
 public:
  // The one of this process, made at the first call. Nothing where there is no adapter.
  static Library* get();
  // The same, if it was made before.
  static Library* existing();
  // The rules, which need no adapter.
  static const LoadedRules& rules();
  // Where their log statement sends what the library says.
  static const SentenceLog& log();
  // Before a process ends: waits until what it has sent is on its way, as the kernel does for TCP.
  static void at_exit();

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
  // What connect(2) of a connected socket says: 0 once if it was told to wait, or EISCONN. Nothing
  // for a socket that is none of the library's.
  std::optional<int> connect_again(int fd);
  // `fd` listens; from now on it is also for peers that come by SDP. Nothing if it cannot be.
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
  // `fd` was accepted just now. If it is a knock, it becomes the connection that knocked, whose
  // peer is returned.
  std::optional<Address> accepted(int fd);
  // The connection that `fd` is a descriptor of, if it is one of the library's.
  std::optional<Names> names(int fd) const;
  bool has_connections() const { return count_.load(std::memory_order_relaxed) > 0; }

 private:
  // Its own name, by which it is known where it is accepted, and a number, for that name may be
  // another one's later.
  struct KnockName {
    StatName name{};
    uint64_t number = 0;
  };
  struct Knock {
    uint64_t number = 0;
    std::shared_ptr<Session> session;
    File file;
    Address own{};  // names of the session, as a socket of the listener has them
    Address peer{};
    std::unique_ptr<Door> door;    // for a process that has accepted it and is not this one
    std::unique_ptr<Relay> relay;  // when it has, or nobody has in time
  };
  struct Connection {
    std::shared_ptr<Stream> stream;
    File shadow;
    std::optional<Address> own;
    Address peer{};
    bool in_progress = false;  // the program was told EINPROGRESS, and nothing since
  };
  explicit Library(Loop& loop) : loop_(loop) {}
  Connection& adopt(const std::shared_ptr<Session>& session, Mirror mirror, int fd,
                    const std::optional<Address>& own, const Address& peer);
  void await_greeting(const std::shared_ptr<Session>& session, const Address& peer,
                      const Address& listener);
  void knock(const std::shared_ptr<Session>& session, const Address& peer, const Address& listener);
  Knock* find_knock(const KnockName& which);
  void forget_knock(const KnockName& which);
  void on_loop(const Loop::Task& task);
  void give_up_knock(const KnockName& which);
  void give_up_knocks();
  void take_knock_from_elsewhere(const KnockName& which);
  void hand_over(const KnockName& which, const File& asker);
  void forget(uint64_t cookie);
  void close_own_descriptors();
  struct Made {
    std::shared_ptr<Session> session;
    Address own{};
    Fallback why = Fallback::none;
    int left = 0;  // errno
  };
  // The caller holds handlers up; they run while it waits.
  Made make(int fd, const Address& to, bool remember, const Awaited::Patience& patience);
  void close_unless_taken(const std::shared_ptr<Awaited>& awaited,
                          const std::weak_ptr<Session>& session);

  Loop& loop_;
  const int process_ = ::getpid();  // whose connections they are
  std::unique_ptr<Fabric> fabric_;
  mutable Mutex lock_;
  std::map<uint64_t, Connection> connections_;  // by cookie
  std::multimap<uint16_t, uint64_t> callers_;   // cookies of those that connected, by own port
  struct KeptRelay {
    File socket;
    std::unique_ptr<Relay> relay;
  };
  std::list<KeptRelay> kept_;  // the loop's
  std::atomic<size_t> count_kept_{0};
  std::map<StatName, Knock> knocks_;  // by own name
  uint64_t last_knock_ = 0;
  std::atomic<size_t> count_{0};
  Absent absent_;
  std::set<const Session*> awaited_;  // the loop's: connections whose peer has said nothing yet
};

}  // namespace weft::sdp
