// IB-style bring-up of RC queue pairs: the program exchanges (GID or LID, QPN) by itself and calls
// modify_qp; here the two sides find each other over TCP (spec/addressing 4, spec/addressing 5).
#pragma once

#include <memory>
#include <vector>

#include "cm/acceptor.h"
#include "verbs/queue_pair.h"
#include "wire/wfrc.h"

namespace weft::cm {

// All of the process's adapter ports and those who wait at them.
class BringUpService final : public verbs::BringUp, private PassiveStartHandler {
 public:
  void port_opened(engine::Token& token, verbs::AdapterPort& port) override;
  void state_changed(engine::Token& token, verbs::QueuePair& qp) override;
  void abandon(engine::Token& token, verbs::QueuePair& qp) override;

 private:
  // A Request for a queue pair that is not ready for it yet.
  struct ParkedRequest {
    PassiveStart* start;
    wire::Wfrc request;
  };
  struct PortState {
    verbs::AdapterPort* port;
    std::vector<ParkedRequest> parked;
  };
  void request_came(engine::Token& token, PassiveStart& start,
                    const mpa::Responder::Request& request) override;
  void start_gone(engine::Token& token, PassiveStart& start) override;
  void start_overdue(engine::Token& token, PassiveStart& start) override;
  void count_no_memory(engine::Token& token) override;
  void judge(engine::Token& token, PortState& port, PassiveStart& start, const wire::Wfrc& request);
  void park(engine::Token& token, PortState& port, PassiveStart& start, const wire::Wfrc& request);
  PortState* state_of(uint16_t number);

  std::mutex lock_;  // of the list; its elements belong to the holder of their engine
  std::vector<std::unique_ptr<PortState>> ports_;
};

}  // namespace weft::cm
