// The IB-style bring-up of one queue pair (spec/addressing 4, spec/addressing 5):
//
//   RTR --lower QPN--> starting --Reply code 0--> connected
//    |                    ^  \--refused, code 1, 2--> waiting 10 .. 500 ms --> starting
//    |                    |
//    \--higher QPN--> listening (Request parked or to come) --Request fits--> connected
//                         \--nothing for 1 s--> starting as a fallback
#pragma once

#include "cm/active_start.h"
#include "cm/passive_start.h"
#include "verbs/bring_up_times.h"
#include "verbs/queue_pair.h"
#include "wire/wfrc.h"

namespace weft::cm {

// Connects one queue pair. Owned by the engine; the queue pair points to it (bring_up_data).
class RcBringUp final : public engine::EventHandler, private ActiveStartHandler {
 public:
  static RcBringUp& start(engine::Token& token, verbs::QueuePair& qp);
  // The queue pair reached RTS: from now on the patience runs.
  void send_side_ready(engine::Token& token);
  void cancel(engine::Token& token);
  // A Request for this queue pair came, and its addresses fit. Takes it or refuses it.
  void request_came(engine::Token& token, PassiveStart& start, const wire::Wfrc& request);

  void on_ready(engine::Token&, bool, bool) override {}
  void on_deadline(engine::Token& token) override;
  void on_doorbell(engine::Token&) override {}
  void on_no_memory(engine::Token& token) override { retry(token); }
  void abandon_in_child() override {}

 private:
  explicit RcBringUp(verbs::QueuePair& qp) : qp_(qp) {}
  void begin(engine::Token& token);
  bool plan_route();
  bool is_active_side() const;
  void connect(engine::Token& token, bool fallback);
  void retry(engine::Token& token);
  void give_up(engine::Token& token);
  void connect_to_self(engine::Token& token);
  void connected(engine::Token& token, Started&& started, bool initiator, uint64_t nonce);
  void start_connected(engine::Token& token, ActiveStart& start, Started&& started) override;
  void start_failed(engine::Token& token, ActiveStart& start,
                    ActiveStartFailure&& failure) override;
  wire::Wfrc block() const;

  verbs::QueuePair& qp_;
  Gid local_;
  Gid remote_;
  uint32_t scope_ = 0;
  ActiveStart* active_start_ = nullptr;
  bool fallback_ = false;
  uint64_t nonce_ = 0;
  verbs::BringUpTimes times_;
};

}  // namespace weft::cm
