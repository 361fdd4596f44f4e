// The IB-style bring-up of one queue pair (spec/addressing 4, spec/addressing 5):
//
//   RTR --lower QPN--> starting --Reply code 0--> connected
//    |                    ^  \--refused, code 1, 2--> waiting 10 .. 500 ms --> starting
//    |                    |
//    \--higher QPN--> listening (Request parked or to come) --Request fits--> connected
//                         \--nothing for 1 s--> starting as a fallback
#pragma once

#include "cm/channel_start.h"
#include "cm/pair_bring_up.h"

namespace weft::cm {

// Connects one queue pair, and hands the stream to its transport.
class RcBringUp final : public PairBringUp,
                        private ActiveStartHandler,
                        private ChannelStartHandler {
 public:
  // It may be over when this returns.
  static void start(engine::Token& token, PairBringUpOwner& owner, verbs::QueuePair& pair);
  void request_waits(engine::Token& token) override;
  void cancel(engine::Token& token) override;
  void request_came(engine::Token& token, StartRequest& start, const wire::Wfrc& request) override;

  void on_deadline(engine::Token& token) override;
  void on_no_memory(engine::Token& token) override { retry(token); }

 private:
  using PairBringUp::PairBringUp;
  void begin(engine::Token& token);
  bool plan_route();
  bool is_active_side() const { return begins(local_, remote_); }
  void connect(engine::Token& token, bool fallback);
  void retry(engine::Token& token);
  void give_up(engine::Token& token);
  void connect_to_self(engine::Token& token);
  void connected(engine::Token& token, Started&& started, bool initiator, uint64_t nonce);
  void start_connected(engine::Token& token, ActiveStart& start, Started&& started) override;
  void start_failed(engine::Token& token, ActiveStart& start,
                    ActiveStartFailure&& failure) override;
  // ChannelStartHandler
  void channel_started(engine::Token& token, ChannelStart& start, Started&& started) override;
  void channel_start_failed(engine::Token& token, ChannelStart& start,
                            ActiveStartFailure&& failure) override;
  void no_channel(engine::Token& token, ChannelStart& start, bool silent) override;
  bool starts() const { return active_start_ != nullptr || channel_start_ != nullptr; }
  bool request_is_out() const;
  void stop_starting(engine::Token& token);
  void connect_by_tcp(engine::Token& token);
  void connect_by_channel(engine::Token& token);
  bool may_start_in_channel(engine::Token& token);
  wdp::Endpoint peer_port() const;
  void reply_came(engine::Token& token, Started&& started);
  void refused(engine::Token& token, const ActiveStartFailure& failure);
  wire::Wfrc block() const;
  std::optional<wire::RdOffer> own_offer() const;

  Gid local_;
  Gid remote_;
  uint32_t scope_ = 0;
  ActiveStart* active_start_ = nullptr;    // by TCP
  ChannelStart* channel_start_ = nullptr;  // through a channel
  bool by_tcp_ = false;                    // for there was no channel
  bool fallback_ = false;
  uint64_t nonce_ = 0;
};

}  // namespace weft::cm
