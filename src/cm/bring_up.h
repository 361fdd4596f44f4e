// Bring-up by number: the program exchanges (GID or LID, QPN) by itself and calls modify_qp; here
// the two sides find each other, over TCP (spec/addressing 5) or by datagrams (spec/addressing 6).
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "cm/acceptor.h"
#include "cm/channel_request.h"
#include "cm/pair_bring_up.h"

namespace weft::cm {

// All of the process's adapter ports and those who wait at them.
class BringUpService final : public verbs::BringUp,
                             private PassiveStartHandler,
                             private ChannelRequestHandler,
                             private PairBringUpOwner {
 public:
  void port_opened(engine::Token& token, verbs::AdapterPort& port) override;
  void state_changed(engine::Token& token, verbs::QueuePair& qp) override;
  void request_waits(engine::Token& token, verbs::QueuePair& qp) override;
  void abandon(engine::Token& token, verbs::QueuePair& qp) override;
  Result<wdp::WdpSocketOwner::Callee, wire::RejReason> called(engine::Token& token,
                                                              verbs::QueuePair& qp,
                                                              const wire::WdpCtl& req,
                                                              const wdp::Endpoint& from) override;
  void start_came(engine::Token& token, verbs::AdapterPort& port,
                  const wdp::RdStart& start) override;

 private:
  // A Request for a queue pair that is not ready for it yet.
  struct ParkedRequest {
    StartRequest* start;
    wire::Wfrc request;
  };
  struct PairState {
    PairBringUp* trying = nullptr;
    uint64_t nonce = 0;  // of the Request that connected it, to tell late copies
  };
  struct PortState {
    verbs::AdapterPort* port;
    std::vector<ParkedRequest> parked;
  };
  // PairBringUpOwner
  void bring_up_begun(verbs::QueuePair& pair, PairBringUp& bring_up) override;
  void bring_up_over(verbs::QueuePair& pair, uint64_t nonce) override;
  SilentPorts& silent_ports() override { return silent_; }
  // PassiveStartHandler
  void request_came(engine::Token& token, PassiveStart& start,
                    const mpa::Responder::Request& request) override;
  void start_gone(engine::Token& token, PassiveStart& start) override;
  void start_overdue(engine::Token& token, PassiveStart& start) override;
  void count_no_memory(engine::Token& token) override;
  // ChannelRequestHandler
  void request_overdue(engine::Token& token, ChannelRequest& request) override {
    overdue(token, request);
  }
  void judge_start(engine::Token& token, PortState& port, ChannelRequest& request,
                   Bytes private_data);
  void request_taken_back(engine::Token& token, PortState& port, const wdp::RdStart& start);
  void overdue(engine::Token& token, StartRequest& start);
  void read_block(engine::Token& token, PortState* port, StartRequest& start, Bytes private_data);
  void judge(engine::Token& token, PortState& port, StartRequest& start, const wire::Wfrc& request);
  void park(engine::Token& token, PortState& port, StartRequest& start, const wire::Wfrc& request);
  void begin(engine::Token& token, verbs::QueuePair& qp);
  PortState* state_of(uint16_t number);
  // nullptr: nothing was tried yet.
  PairState* state_of(const verbs::QueuePair& qp);
  PairState& make_state(const verbs::QueuePair& qp);

  std::mutex lock_;  // of the list and the map; their elements belong to the holder of their engine
  std::map<Qpn, PairState> pairs_;  // from the first try on until abandon()
  std::vector<std::unique_ptr<PortState>> ports_;
  SilentPorts silent_;
};

}  // namespace weft::cm
