// A rdma_cm identifier on an event channel of its own. The channel's descriptor is the number by
// which a program knows a socket of streams; it is readable when something comes of a connection
// that begins, or of a listener.
#pragma once

#include <rdma/rdma_cma.h>
#include <sys/socket.h>

#include <memory>
#include <optional>
#include <vector>

#include "abi/rsockets/wire.h"
#include "base/keepalive.h"

namespace weft::rsockets {

// One user at a time, but for fd(). Functions that can fail return 0 or an errno value.
class CmEnd {
 public:
  CmEnd() = default;
  CmEnd(const CmEnd&) = delete;
  CmEnd& operator=(const CmEnd&) = delete;
  ~CmEnd();

  int open();
  // Takes over the identifier of a request that a listener got. Owns it also when this fails.
  int adopt(rdma_cm_id* request);

  int fd() const { return channel_->fd; }
  rdma_cm_id* id() const { return id_; }

  int bind(const sockaddr* address);
  int listen(int backlog);
  // Begins to resolve `address`. The events of next() lead on, up to route_known.
  int resolve(const sockaddr* address);
  int connect(const ConnectData& data);
  int accept(const ConnectData& data);
  // Before or during a connection.
  int keep_alive(Keepalive keepalive);

  struct Event {
    enum class Kind { route_known, established, request, ended, failed };
    Kind kind = Kind::failed;
    int error = 0;                  // of `failed`
    rdma_cm_id* request = nullptr;  // the taker's
    std::optional<ConnectData>
        peer;  // of `request` and, where this side connects, of `established`
  };
  // The next event, if there is one. Never waits.
  std::optional<Event> next();

 private:
  // One that does not block.
  int open_channel();
  // Nothing when what comes next is already under way.
  std::optional<Event> translate(const rdma_cm_event& event);

  struct FreeChannel {
    void operator()(rdma_event_channel* c) const { rdma_destroy_event_channel(c); }
  };
  std::unique_ptr<rdma_event_channel, FreeChannel> channel_;
  rdma_cm_id* id_ = nullptr;
};

}  // namespace weft::rsockets
