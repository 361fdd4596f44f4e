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
  virtual void request_overdue(engine::Token& token, ChannelRequest& request) = 0;

 protected:
  ~ChannelRequestHandler() = default;
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

  void on_ready(engine::Token&, bool, bool) override {}
  void on_deadline(engine::Token& token) override { handler_.request_overdue(token, *this); }
  void on_doorbell(engine::Token&) override {}
  void on_no_memory(engine::Token& token) override { drop(token); }
  void abandon_in_child() override {}

 private:
  ChannelRequest(ChannelRequestHandler& handler, drive::DatagramDriver& driver,
                 const wdp::RdChannel& channel, const wire::RdOffer& peer, Qpn own)
      : handler_(handler),
        driver_(driver),
        channel_(channel.token()),
        path_(channel.path()),
        peer_(peer),
        own_(own) {}
  void end(engine::Token& token);
  // The one that it came by, with room for an answer; else null.
  wdp::RdChannel* channel() const;

  ChannelRequestHandler& handler_;
  drive::DatagramDriver& driver_;
  const SessionToken channel_;
  const wdp::Path path_;
  const wire::RdOffer peer_;
  const Qpn own_;
  mpa::Responder responder_;
  bool gone_ = false;
};

}  // namespace weft::cm
