// The protocol core of an RD queue pair (spec/wdp-rd 6): its requests, and what it does for its
// peers'. All goes by the channels of its socket.
#pragma once

#include "base/undo.h"
#include "wdp/rd_channels.h"
#include "wdp/rd_requester.h"
#include "wdp/rd_responder.h"

namespace weft::wdp {

// Engine holder only. Says by channels what its turns in the driver are for; its own trains are
// empty.
class RdQueue final : public TrainSource, public RdClient, public RdMember {
 public:
  struct Parameters {
    Qpn own_qpn;
    QKey q_key;
    uint8_t rnr_retry = kRnrForEver;
  };
  RdQueue(RdChannels& channels, RdConsumer& consumer, const Parameters& parameters)
      : channels_(channels),
        consumer_(consumer),
        index_(index_of(parameters.own_qpn)),
        client_(channels.add(*this)),
        requester_(consumer, {.own_qpn = parameters.own_qpn,
                              .q_key = parameters.q_key,
                              .client = client_,
                              .rnr_retry = parameters.rnr_retry}),
        responder_(consumer, parameters.own_qpn, parameters.q_key, client_) {
    Undo unknown{[&] { channels_.remove(client_); }};
    channels_.add(index_, static_cast<RdMember&>(*this));
    unknown.done();
  }
  // Peers hear that there is nobody any more.
  ~RdQueue() override {
    channels_.remove(client_);
    channels_.remove_member(index_);
    requester_.leave();
    responder_.leave();
  }
  RdQueue(const RdQueue&) = delete;
  RdQueue& operator=(const RdQueue&) = delete;

  const RdRequester& requester() const { return requester_; }
  const RdResponder& responder() const { return responder_; }

  // --- TrainSource
  bool ready(Time now) override { return responder_.ready(now) || requester_.ready(now); }
  void fill(Train& train, Time now) override {
    if (!train.empty()) return;
    responder_.send(now);
    requester_.send(now);
  }
  bool urgent(Time) const override { return false; }
  void llp_took_all(Time) override {}
  void path_carries(size_t) override {}
  void own_memory_lost(Time) override {}

  // --- the queue pair
  void posted() { responder_.posted(); }
  Time deadline() { return std::min(requester_.deadline(), responder_.deadline()); }
  void hold(bool on) { requester_.hold(on); }
  bool idle() const { return requester_.idle(); }
  void set_attributes(QKey key, uint8_t rnr_retry) {
    requester_.set_q_key(key);
    requester_.set_rnr_retry(rnr_retry);
    responder_.set_q_key(key);
  }

  // --- RdClient: a channel that has a message is not the peer that has it
  void message_ended(uint64_t, End) override {}
  void has_room() override {
    requester_.resume();
    responder_.resume();
    consumer_.wants_turn();
  }
  void channel_ended(const RdChannel& channel) override {
    requester_.channel_ended(channel);
    responder_.channel_ended(channel);
  }
  // --- RdMember
  void take(RdChannel& channel, const RdArrival& arrival, Bytes payload) override {
    if (arrival.header.is_response()) {
      requester_.take(channel, arrival.header, payload);
    } else {
      responder_.take(channel, arrival, payload);
    }
  }
  void answered(RdChannel& channel, const wire::WdpResponse& response) override {
    requester_.answered(channel, response);
  }

 private:
  RdChannels& channels_;
  RdConsumer& consumer_;
  const uint8_t index_;
  const ClientId client_;
  RdRequester requester_;
  RdResponder responder_;
};

}  // namespace weft::wdp
