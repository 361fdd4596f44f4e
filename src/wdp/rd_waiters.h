// Who waits for a channel: clients that have more to say than it has room for, and those that want
// to be asked when it may be at rest. Each is told once, and asks again if it still waits.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "wdp/rd_limits.h"
#include "wdp/rd_shared.h"

namespace weft::wdp {

// Of one channel. Engine holder only.
class RdWaiters {
 public:
  // The reference is kept. A client that is gone by its turn is not told.
  explicit RdWaiters(RdShared& shared) : shared_(shared) {}

  void want_room(ClientId client) {
    if (std::find(room_.begin(), room_.end(), client) == room_.end()) room_.push_back(client);
  }
  bool empty() const { return room_.empty() && rest_.empty(); }
  bool any_wants_room() const { return !room_.empty(); }
  void tell_of_room() {
    for (const ClientId id : std::exchange(room_, {})) {
      if (RdClient* client = shared_.client(id)) client->has_room();
    }
  }

  // The client is asked kWindowRests after `active` whether it rests (RdClient::look_for_rest()),
  // if it is the first.
  void want_rest(ClientId client, Time active) {
    rest_.push_back(client);
    if (rest_at_.is_never()) rest_at_ = active + kWindowRests;
  }

  Time deadline() const { return rest_at_; }
  void tick(Time now) {
    if (now < rest_at_) return;
    rest_at_ = Time::never();
    for (const ClientId id : std::exchange(rest_, {})) {
      if (RdClient* client = shared_.client(id)) client->look_for_rest(now);
    }
    if (!rest_.empty()) rest_at_ = now + kWindowRests;
  }

 private:
  RdShared& shared_;
  std::vector<ClientId> room_;
  std::vector<ClientId> rest_;
  Time rest_at_ = Time::never();
};

}  // namespace weft::wdp
