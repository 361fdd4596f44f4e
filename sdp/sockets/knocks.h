// Connections that have come by SDP for a listener, and that no accept(2) has taken yet
// (design/28). When the peer's program has its end, the library connects to the program's TCP
// listener itself: that is the knock. Who accepts it gets the connection: this process by take(),
// another one at the knock's door; where nobody has asked in time the knock itself is relayed.
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
#include "sdp/sockets/door.h"
#include "sdp/sockets/mirror.h"
#include "sdp/sockets/relay.h"
#include "sdp/stat/layout.h"

namespace weft::sdp {

class Knocks {
 public:
  Knocks(Loop& loop, Fabric& fabric) : loop_(loop), fabric_(fabric) {}
  Knocks(const Knocks&) = delete;
  Knocks& operator=(const Knocks&) = delete;

  // `session` has come for a socket that listens at `listener`, which is knocked at when the peer's
  // program has its end (spec/sdp 3.4).
  void await_greeting(const std::shared_ptr<Session>& session, const Address& peer,
                      const Address& listener);
  struct Taken {
    Address peer{};
    std::shared_ptr<Session> session;  // nothing: the knock is the connection itself
    Mirror mirror;
  };
  // `fd` was accepted just now, and its peer's name is `from`. If it is a knock, the connection
  // that knocked has a mirror in its place. Any thread, which holds handlers up.
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
  struct Knock {
    uint64_t number = 0;
    std::shared_ptr<Session> session;
    File file;
    Address own{};  // names of the session, as a socket of the listener has them
    Address peer{};
    std::unique_ptr<Door> door;    // for a process that has accepted it and is not this one
    std::unique_ptr<Relay> relay;  // when it has, or nobody has in time
  };
  void knock(const std::shared_ptr<Session>& session, const Address& peer, const Address& listener);
  Knock* find(const Name& which);
  void forget(const Name& which);
  void give_up(const Name& which);
  void give_up(const std::shared_ptr<Session>& session);
  void take_from_elsewhere(const Name& which);
  void hand_over(const Name& which, const File& asker);

  Loop& loop_;
  Fabric& fabric_;
  Mutex lock_;
  std::map<StatName, Knock> knocks_;  // by own name
  uint64_t last_ = 0;
  std::set<const Session*> awaited_;  // the loop's: connections whose peer has said nothing yet
};

}  // namespace weft::sdp
