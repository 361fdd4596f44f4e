// The passive side of a start through a channel (spec/wdp-rd 7.5): a Request that has come for a
// queue pair, until somebody says yes or no.
#pragma once

#include "cm/start_request.h"
#include "drive/datagram_driver.h"
#include "mpa/startup.h"

namespace weft::cm {

class ChannelRequest;
// Engine holder calls.
class ChannelRequestHandler {
 public:
  // The time of wait_until() is over: answer it now.
  virtual void request_overdue(engine::Token&, ChannelRequest&) {}
  // Its peer has taken it back, or has gone; it is gone afterwards. See ChannelRequest::gone().
  virtual void request_gone(engine::Token&, ChannelRequest&) {}

 protected:
  ~ChannelRequestHandler() = default;
};

// Who keeps those that are for a listener.
class ChannelRequestKeeper {
 public:
  // Yes was said: `given_up` is to be told when the peer takes it back after all.
  virtual void request_accepted(engine::Token& token, const ChannelRequest& request,
                                drive::GivenUp given_up) = 0;
  // Last word of it: it is answered, or gone.
  virtual void request_over(engine::Token& token, ChannelRequest& request) = 0;

 protected:
  ~ChannelRequestKeeper() = default;
};

class ChannelRequest final : public engine::EventHandler, public StartRequest {
 public:
  // What the engine owns, with the frame that it brings. Null: the message is none, or its channel
  // has ended. The references are kept. Throws std::bad_alloc.
  struct Came {
    ChannelRequest* request = nullptr;
    mpa::Responder::Request frame;
  };
  static Came start(engine::Token& token, ChannelRequestHandler& handler,
                    drive::DatagramDriver& driver, const wdp::RdStart& start);

  // Is it the one that `start` takes back?
  bool is_cancelled_by(const wdp::RdStart& start) const;
  // The peer has taken it back, or its channel has ended: the handler hears of it.
  void gone(engine::Token& token);
  // Nobody hears an answer any more.
  bool channel_has_ended() const;
  // Another handler for what is to come.
  void hand_over(ChannelRequestHandler& handler) { handler_ = &handler; }
  // The queue pair that it is for, and the one that it comes from.
  Qpn destination() const { return own_; }
  Qpn source() const { return peer_.qpn; }

  // StartRequest
  Gid sender() const override { return path_.to.address; }
  bool speaks_for(const verbs::Context& context, Qpn peer) const override;
  std::optional<Started> accept(engine::Token& token, const mpa::Offer& limits, Bytes private_data,
                                const std::optional<wire::RdOffer>& rd) override;
  void reject(engine::Token& token, Bytes private_data) override;
  void wait_until(engine::Token& token, Time when) override;
  void drop(engine::Token& token) override;

  // --- of a listener (spec/wdp-rd 7.6): the connection goes by the socket of the queue pair
  void is_kept_by(ChannelRequestKeeper& keeper) { keeper_ = &keeper; }
  // The port that the peer's id has, or else that of its socket.
  uint16_t caller() const { return caller_ != 0 ? caller_ : path_.to.port; }
  // By which it came.
  SessionToken by() const { return channel_; }
  const wdp::Path& path() const { return path_; }
  const wire::RdOffer& peer() const { return peer_; }
  // The Reply, which names `own`: that queue pair's socket waits for the peer already (RdBytes).
  // Nothing: the peer cannot be answered. Gone afterwards.
  std::optional<mpa::Parameters> accept_there(engine::Token& token, const mpa::Offer& limits,
                                              Bytes private_data, const wire::RdOffer& own,
                                              drive::GivenUp given_up);

  void on_ready(engine::Token&, bool, bool) override {}
  void on_deadline(engine::Token& token) override { handler_->request_overdue(token, *this); }
  void on_doorbell(engine::Token&) override {}
  void on_no_memory(engine::Token& token) override { drop(token); }
  void abandon_in_child() override {}

 private:
  ChannelRequest(ChannelRequestHandler& handler, drive::DatagramDriver& driver,
                 const wdp::RdChannel& channel, const wdp::RdStart& start, Qpn own)
      : handler_(&handler),
        driver_(driver),
        channel_(channel.token()),
        path_(channel.path()),
        peer_(start.offer),
        own_(own),
        caller_(start.caller) {}
  void end(engine::Token& token);
  // The one that it came by, with room for an answer; else null.
  wdp::RdChannel* channel() const;

  void say(wdp::RdChannel& by, Bytes reply);

  ChannelRequestHandler* handler_;
  ChannelRequestKeeper* keeper_ = nullptr;
  drive::DatagramDriver& driver_;
  const SessionToken channel_;
  const wdp::Path path_;
  const wire::RdOffer peer_;
  const Qpn own_;
  const uint16_t caller_;
  mpa::Responder responder_;
  bool gone_ = false;
};

}  // namespace weft::cm
