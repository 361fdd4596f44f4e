// The adapters of this machine as SDP uses them: connections are made and taken here. All of it
// runs on the loop's thread.
//
// Above 400 lines with its source: listening and calling share what is known of adapters.
#pragma once

#include <netinet/in.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/keepalive.h"
#include "sdp/loop/loop.h"
#include "sdp/rdma/completions.h"
#include "sdp/rdma/session.h"

namespace weft::sdp {

// An IPv4 or IPv6 address with a port.
union Address {
  sockaddr any;
  sockaddr_in v4;
  sockaddr_in6 v6;

  uint16_t port() const { return ntohs(any.sa_family == AF_INET ? v4.sin_port : v6.sin6_port); }
  void set_port(uint16_t port) {
    (any.sa_family == AF_INET ? v4.sin_port : v6.sin6_port) = htons(port);
  }
  socklen_t size() const { return any.sa_family == AF_INET ? sizeof v4 : sizeof v6; }
};

class Fabric final : private QueueSource {
 public:
  // What became of a connect: an session, or nothing and why (errno). Sessions are the fabric's;
  // they stay until close().
  using Connected = std::function<void(std::shared_ptr<Session>, int error)>;
  // A peer that has connected: its address as its Hello has it.
  using Accepted = std::function<void(std::shared_ptr<Session>, const Address& peer)>;
  // A connection that was ended here: a peer that broke the protocol, by the address that it
  // connected from, or there was no memory.
  using Broken = std::function<void(const Address& peer, const std::string& why)>;
  struct Listener;

  // Nothing with errno if there is no adapter. `loop` outlives it. `broken` is called on its
  // thread.
  static std::unique_ptr<Fabric> open(Loop& loop, Broken broken);
  ~Fabric();

  // `from`: where the program's socket is bound to; its port is what the peer is told. Ends with
  // ETIMEDOUT after so many milliseconds. `receive_bytes` is Session's. `no_fallback`: an
  // adapter may ask again where nobody listens yet.
  struct ConnectOptions {
    int milliseconds = 0;
    uint32_t receive_bytes = 0;
    bool no_fallback = false;
  };
  void connect(const Address& from, const Address& to, const ConnectOptions& options,
               Connected done);
  // Nothing with errno. It listens until forget(). `one_family`: at an address of IPv6 not for IPv4
  // as well. `receive_bytes` is asked for each connection, on the loop's thread.
  Listener* listen(const Address& at, bool one_family, int backlog,
                   std::function<uint32_t()> receive_bytes, Accepted accepted);
  void forget(Listener* listener);
  // Ends a connection when it has nothing left to send, or after a minute; at once if there is data
  // that nobody has read, as TCP does. Of `session` nothing but its end can be had
  // any more.
  void close(const std::shared_ptr<Session>& session);
  // When it gives up a silent peer. Adapters that do not know of that do as they do.
  void keep_alive(const Session& session, Keepalive keepalive);
  // There was no memory for something: what was not told or done is.
  void catch_up();
  // Connections that are closed and still have something to send.
  size_t sending() const { return count_sending_; }
  // Whether the peers of all connections have what was sent to them.
  bool all_sent();
  // Of all connections. Any thread.
  Completions& completions() { return completions_; }

 private:
  struct Attempt;
  struct Device {
    Verbs<ibv_pd> pd;
    Verbs<ibv_comp_channel> channel;
    uint32_t largest_queue = 0;
  };
  Fabric(Loop& loop, rdma_event_channel* channel, Broken broken);
  void on_cm_event();
  void on_event_of(const rdma_cm_event& event);
  bool open_device(Device& device, ibv_context* context);
  ibv_cq* make_queue(ibv_context* device, uint32_t entries) override;
  bool resize_queue(ibv_cq* queue, uint32_t entries) override;
  void end_queue(ibv_cq* queue) override;
  uint32_t largest_queue(ibv_context* device) override;
  void on_completions(ibv_comp_channel* channel);
  void attend();
  bool advance(Attempt& attempt, const rdma_cm_event& event);
  void finish(const rdma_cm_id* id, int error);
  void on_request(Listener& listener, const rdma_cm_event& event);
  bool accept(Listener& listener, const Hello& hello, const std::shared_ptr<Attempt>& attempt);
  void give_up(const rdma_cm_event& event);
  std::shared_ptr<Session> make_session(rdma_cm_id* id, uint32_t receive_bytes);
  bool has_room() const;
  void discard(rdma_cm_id* id);
  // What its end needs has its memory from the start.
  using Clock = std::chrono::steady_clock;
  struct Kept {
    std::shared_ptr<Session> session;
    Loop::Ready end;  // is done once
    bool closed = false;
    bool sending = false;     // closed, and not all is with the peer
    bool leaving = false;     // it has nothing left to send
    Clock::time_point until;  // of one that is closed: then it ends in any case
  };
  void go_on_closing(Kept& kept);
  void note_said_all(Kept& kept);
  void destroy(Kept& kept);
  void destroy_now(const rdma_cm_id* id);
  void watch_closing();

  Loop& loop_;
  rdma_event_channel* channel_;
  const Broken broken_;
  std::map<ibv_context*, Device> devices_;
  Completions completions_{*this};
  std::map<const rdma_cm_id*, std::shared_ptr<Attempt>> attempts_;
  std::map<const rdma_cm_id*, std::unique_ptr<Listener>> listeners_;
  std::map<const rdma_cm_id*, Kept> sessions_;
  bool watches_closing_ = false;
  std::atomic<size_t> count_sending_{0};
};

}  // namespace weft::sdp
