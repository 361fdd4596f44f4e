// The port that an Id of RDMA_PS_TCP listens at: on TCP for RC, and, unless it is told to leave
// that to others, on the UDP port of the same number for UC (spec/wdp 4.9), and for RC over UDP
// (spec/wdp-rd 7.6). Requests of all kinds come to one handler.
#pragma once

#include "cm/bound_port.h"
#include "cm/datagram_listener.h"
#include "cm/listener.h"
#include "cm/pending_request.h"

namespace weft::cm {

// What a peer that wants to connect has said.
struct ConnectionRequest {
  PendingRequest pending;
  port::Address local;
  port::Address peer;
  // RDMA Reads that the peer serves, and those that it sends; nothing: it does not say.
  std::optional<uint16_t> ird;
  std::optional<uint16_t> ord;
  Bytes private_data;  // good for the call
};

// Engine holder calls.
class ListeningPortHandler {
 public:
  virtual ~ListeningPortHandler() = default;
  // So many requests wait for the program that others have to wait, or are refused.
  virtual bool crowded() const = 0;
  // A peer wants to connect, and cannot be answered inside this call. Whoever hears what becomes of
  // its start-up from now on; nullptr: the program hears of no requests any more. Where it throws
  // std::bad_alloc, the peer is refused.
  virtual PendingRequestHandler* connection_requested(engine::Token& token,
                                                      const ConnectionRequest& request) = 0;
};

// Engine holder. The handler outlives it; stop() comes before its end.
class ListeningPort final : private ListenerHandler, private DatagramListenerHandler {
 public:
  struct Settings {
    int backlog = 0;
    std::optional<uint8_t> type_of_service;
    bool one_family = false;
    bool only_rc = false;  // the UDP port is left to others
  };

  explicit ListeningPort(ListeningPortHandler& handler) : handler_(handler) {}

  // Listens at `at`, whose number `port` keeps. Where somebody has that on UDP, RC alone is served,
  // and the log says so. `port` stays the caller's, and outlives stop(). 0 or an errno value; then,
  // and where it throws std::bad_alloc, nobody listens, and `port` keeps its number.
  int start(engine::Token& token, BoundPort& port, const port::Address& at,
            const Settings& settings);
  // The handler is not crowded any more.
  void resume(engine::Token& token);
  // Nobody listens afterwards. Requests that the handler has taken live on.
  void stop(engine::Token& token);

 private:
  // ListenerHandler
  void connection_requested(engine::Token& token, PassiveStart& start,
                            const mpa::Responder::Request& request) override;
  // DatagramListenerHandler
  std::optional<wire::RejReason> datagram_requested(engine::Token& token, const DatagramCall& call,
                                                    const wdp::Handshake& handshake) override;
  // ChannelListenerHandler
  bool crowded() const override { return handler_.crowded(); }
  void channel_requested(engine::Token& token, ChannelRequest& request,
                         const mpa::Responder::Request& frame) override;
  port::Address address(const Gid& gid, uint16_t number) const {
    return port::Address::from_gid(gid, number, at_.scope());
  }

  ListeningPortHandler& handler_;
  Listener* tcp_ = nullptr;
  DatagramListener* udp_ = nullptr;
  port::Address at_;
};

}  // namespace weft::cm
