// A listening Id's UDP socket: who calls there (spec/wdp 4.9), and the answers. Of RC, see
// ChannelListener.
#pragma once

#include "cm/channel_listener.h"
#include "drive/datagram_driver.h"

namespace weft::verbs {
class DatagramCaller;
}

namespace weft::cm {

class DatagramListener;

// A caller that waits for an answer. Exactly one of its functions is called, by the engine's
// holder. Value type.
struct DatagramCall {
  DatagramListener* listener = nullptr;
  wdp::RequestKey key;
  wdp::Path path;  // back to the caller

  // False: the caller is not there any more, as far as that is known.
  bool accept(engine::Token& token, verbs::DatagramCaller& caller, const wdp::Offer& offer) const;
  void tell(engine::Token& token, const wdp::Offer& offer) const;
  void reject(engine::Token& token, wire::RejReason reason, Bytes private_data) const;
};

// Engine holder calls.
class DatagramListenerHandler : public ChannelListenerHandler {
 public:
  // A peer wants something. Nothing: the call will be answered. Is inside a visit of the driver, so
  // that it cannot be answered yet.
  virtual std::optional<wire::RejReason> datagram_requested(engine::Token& token,
                                                            const DatagramCall& call,
                                                            const wdp::Handshake& handshake) = 0;
};

class DatagramListener final : public engine::EventHandler,
                               private drive::DatagramOwner,
                               private ChannelListenerHandler {
 public:
  // The engine owns it. `udp` is bound.
  static DatagramListener& start(engine::Token& token, DatagramListenerHandler& handler,
                                 wire::CtlService service, port::Fd udp);
  // Connections of RC begin here, too. `port`: that of the socket.
  void take_channels(uint16_t port);
  // The handler is not crowded any more.
  void resume(engine::Token& token) {
    if (channels_) channels_->resume(token);
  }
  // Nobody is listened to any more; those who wait can still be answered, and sessions live on.
  void stop(engine::Token& token);
  drive::DatagramDriver& driver() { return *driver_; }

  void on_ready(engine::Token&, bool, bool) override {}
  void on_deadline(engine::Token&) override {}
  void on_doorbell(engine::Token&) override {}
  void abandon_in_child() override {}

 private:
  friend struct DatagramCall;
  DatagramListener(DatagramListenerHandler& handler, wire::CtlService service)
      : handler_(&handler), service_(service) {}
  std::optional<wire::RejReason> requested(engine::Token& token, drive::DatagramDriver& driver,
                                           const wdp::RequestKey& key,
                                           const wdp::Handshake& handshake) override;
  void start_came(engine::Token& token, drive::DatagramDriver&,
                  const wdp::RdStart& start) override {
    if (channels_) channels_->start_came(token, start);
  }
  // ChannelListenerHandler
  bool crowded() const override { return handler_ != nullptr && handler_->crowded(); }
  void channel_requested(engine::Token& token, ChannelRequest& request,
                         const mpa::Responder::Request& frame) override {
    handler_->channel_requested(token, request, frame);
  }
  void channel_request_over(engine::Token& token) override { end_if_unused(token); }
  void call_over(engine::Token& token);
  void end_if_unused(engine::Token& token);

  DatagramListenerHandler* handler_;  // nullptr: stopped
  const wire::CtlService service_;
  drive::DatagramDriver* driver_ = nullptr;  // until it has started
  std::unique_ptr<ChannelListener> channels_;
  size_t waiting_ = 0;
  bool gone_ = false;
};

}  // namespace weft::cm
