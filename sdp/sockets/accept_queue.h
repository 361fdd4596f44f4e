// Connections that have come by SDP for a listener, and that no accept(2) has taken yet
// (design/28). When the peer's program has its end, the library connects to the program's TCP
// listener itself. This wake-up connection makes the listener readable. The process that accepts it
// gets the connection: this one by take(), another one by a handover (handover.h). If nobody has
// asked in time, the library relays to the wake-up connection.
//
// The loop's thread, unless it is said.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "sdp/loop/handlers.h"
#include "sdp/rdma/fabric.h"
#include "sdp/sockets/handover.h"
#include "sdp/sockets/mirror.h"
#include "sdp/sockets/relay.h"
#include "sdp/stat/layout.h"

namespace weft::sdp {

class AcceptQueue {
 public:
  AcceptQueue(Loop& loop, Fabric& fabric) : loop_(loop), fabric_(fabric) {}
  AcceptQueue(const AcceptQueue&) = delete;
  AcceptQueue& operator=(const AcceptQueue&) = delete;

  // `session` has come for a socket that listens at `listener`, which is woken when the peer's
  // program has its end (spec/sdp 3.4).
  void await_greeting(const std::shared_ptr<Session>& session, const Address& peer,
                      const Address& listener);
  struct Taken {
    Address peer{};
    std::shared_ptr<Session> session;  // nothing: the wake-up connection stays
    Mirror mirror;
  };
  // `fd` was accepted just now, and its peer's name is `from`. If it is a wake-up connection,
  // a mirror takes its place. Any thread, which holds handlers up.
  std::optional<Taken> take(int fd, const Address& from);
  // At the end of the process, which nobody accepts any more in.
  void give_up_all();

 private:
  // Its own name, by which it is known where it is accepted, and a number, for that name may be
  // another one's later.
  struct Name {
    StatName name{};
    uint64_t number = 0;
  };
  struct Pending {
    uint64_t number = 0;
    std::shared_ptr<Session> session;
    File file;      // the end of the wake-up connection that has connected
    Address own{};  // names of the session, as a socket of the listener has them
    Address peer{};
    std::unique_ptr<Handover> handover;  // for a process that has accepted it and is not this one
    std::unique_ptr<Relay> relay;        // when it has, or nobody has in time
  };
  void wake_listener(const std::shared_ptr<Session>& session, const Address& peer,
                     const Address& listener);
  Pending* find(const Name& which);
  void forget(const Name& which);
  void give_up(const Name& which);
  void give_up(const std::shared_ptr<Session>& session);
  void take_from_elsewhere(const Name& which);
  void hand_over(const Name& which, const File& asker);

  Loop& loop_;
  Fabric& fabric_;
  Mutex lock_;
  std::map<StatName, Pending> pending_;  // by own name
  uint64_t last_ = 0;
  std::set<const Session*> awaited_;  // the loop's: connections whose peer has said nothing yet
};

}  // namespace weft::sdp
