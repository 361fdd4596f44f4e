// What comes to a listening Id's UDP socket through channels: Requests of RC (spec/wdp-rd 7.6),
// until the program has answered them.
#pragma once

#include <deque>
#include <vector>

#include "cm/channel_request.h"

namespace weft::cm {

// Engine holder calls.
class ChannelListenerHandler {
 public:
  virtual ~ChannelListenerHandler() = default;
  // So many requests wait for the program that others have to wait.
  virtual bool crowded() const { return false; }
  // A peer wants to connect. The handler answers now, or hands the request over to whom it may
  // concern. What it has no memory for it begins before that.
  virtual void channel_requested(engine::Token&, ChannelRequest&, const mpa::Responder::Request&) {}
  // A request that was kept is kept no more.
  virtual void channel_request_over(engine::Token&) {}
};

// Engine holder only. The driver outlives it.
class ChannelListener final : public drive::DatagramSender,
                              private engine::EventHandler,
                              private wdp::RdClient,
                              private ChannelRequestHandler,
                              private ChannelRequestKeeper {
 public:
  ChannelListener(drive::DatagramDriver& driver, ChannelListenerHandler& handler);
  // drive::DatagramOwner
  void start_came(engine::Token& token, const wdp::RdStart& start);
  // The handler is not crowded any more.
  void resume(engine::Token& token);
  // Whoever asks from now on is refused. Requests that the handler has taken live on.
  void stop(engine::Token& token);
  bool waited_for() const { return !waiting_.empty(); }
  // Last call to it.
  void leave(engine::Token& token);

 private:
  // An answer that was yes. Its channel asks whether the peer is there.
  struct Accepted {
    SessionToken channel;
    wire::RdOffer peer;
    drive::GivenUp given_up;
  };
  // drive::DatagramSender
  void settled(engine::Token& token) override;
  void on_no_memory(engine::Token&) override {}
  // engine::EventHandler, without a descriptor
  void on_ready(engine::Token&, bool, bool) override {}
  void on_deadline(engine::Token& token) override;
  void on_doorbell(engine::Token&) override {}
  void abandon_in_child() override {}
  // wdp::RdClient
  void message_ended(uint64_t, End) override {}
  void has_room() override {}
  void channel_ended(const wdp::RdChannel& channel) override;
  // ChannelRequestKeeper
  void request_accepted(engine::Token& token, const ChannelRequest& request,
                        drive::GivenUp given_up) override;
  void request_over(engine::Token& token, ChannelRequest& request) override;

  void take(engine::Token& token, const wdp::RdStart& start);
  void taken_back(engine::Token& token, const wdp::RdStart& start);
  void forget_those_that_came();

  drive::DatagramDriver& driver_;
  ChannelListenerHandler& handler_;
  bool stopped_ = false;
  std::deque<wdp::RdStart> crowd_;  // while the handler is crowded
  const wdp::ClientId client_;      // behind what takes memory, for it is taken back by leave()
  std::vector<ChannelRequest*> waiting_;
  std::vector<Accepted> accepted_;  // until the peers' first words
};

}  // namespace weft::cm
