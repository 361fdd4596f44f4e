// The active side of a start-up: TCP connect, MPA Request, Reply; and again with less when the peer
// does not understand (spec/mpa 2.3.4).
#pragma once

#include "cm/started.h"
#include "engine/engine.h"
#include "mpa/startup.h"
#include "shared/agreement.h"
#include "stats/reasons.h"

namespace weft::cm {

struct ActiveStartPlan {
  port::Address from;     // port 0: the kernel's choice
  bool any_port = false;  // where this port cannot be had towards that peer another one will do
  port::Address to;
  mpa::Offer offer;
  std::vector<std::byte> private_data;
  Duration timeout{};  // for all of it
  std::optional<uint8_t> type_of_service;
  std::optional<wire::RdOffer> rd;  // this end would go by datagrams
  bool fallbacks = true;  // try without the extension, then MPA revision 1, where the peer closes
                          // without a Reply
};

struct ActiveStartFailure {
  enum class Kind : uint8_t {
    refused,      // nobody listens there, or the socket connected to itself
    unreachable,  // no route, no answer from the host
    timed_out,
    rejected,  // the peer's application said no; private data is its reason
    protocol,  // what came was no MPA, or could not be agreed on
  };
  Kind kind{};
  int error = 0;  // errno where the kernel gave one
  std::vector<std::byte> private_data;
};

class ActiveStart;
// Hears of the outcome once; the start is gone afterwards. Engine holder.
class ActiveStartHandler {
 public:
  virtual ~ActiveStartHandler() = default;
  virtual void start_connected(engine::Token& token, ActiveStart& start, Started&& started) = 0;
  virtual void start_failed(engine::Token& token, ActiveStart& start,
                            ActiveStartFailure&& failure) = 0;
};

class ActiveStart final : public engine::EventHandler {
 public:
  // Begins on the engine, which owns the start. The handler is called later, never from
  // inside this call. `bound`: a socket that is bound to plan.from, for the first try.
  static ActiveStart& start(engine::Token& token, ActiveStartHandler& handler, ActiveStartPlan plan,
                            port::Fd bound = {});
  // No outcome is wanted any more. The start ends at once, or, if the peer may be waiting for an
  // RTR frame, when that is sent (spec/mpa 2.5.6).
  void cancel(engine::Token& token);
  // Is the Request out (spec/addressing 5.5)? Before that it gives way to a connection that comes
  // in.
  bool request_sent() const { return state_ == State::awaiting_reply; }
  const ActiveStartPlan& plan() const { return plan_; }
  // Where the connection starts; known once it is connected.
  port::Address local() const { return tcp_.local(); }

  void on_ready(engine::Token& token, bool readable, bool writable) override;
  void on_deadline(engine::Token& token) override;
  void on_doorbell(engine::Token&) override {}
  void on_no_memory(engine::Token& token) override;
  void abandon_in_child() override { tcp_.close(); }

 private:
  enum class State : uint8_t { connecting, awaiting_reply, failed_at_start };
  ActiveStart(ActiveStartHandler& handler, ActiveStartPlan plan)
      : handler_(&handler), plan_(std::move(plan)), initiator_(plan_.offer) {}

  void connect(engine::Token& token, port::Fd bound);
  Result<port::TcpStream, port::SystemError> socket_to_peer(port::Fd bound);
  void fail_at_start(engine::Token& token, int error);
  void fail_by_system(engine::Token& token, int error);
  void watch(engine::Token& token);
  void look_for_answers(engine::Token& token);
  void connected(engine::Token& token);
  void read_reply(engine::Token& token);
  // The connection with what was agreed; nothing is left to watch here.
  Started hand_over(engine::Token& token, const mpa::Parameters& agreed);
  std::optional<shared::Segment> answer_offer(engine::Token& token,
                                              const mpa::Initiator::Outcome& outcome);
  std::optional<wire::RdOffers> answer_rd(const mpa::Initiator::Outcome& outcome);
  void judge(engine::Token& token, mpa::Initiator::Outcome&& outcome, Bytes rest);
  void no_reply(engine::Token& token, int error);
  bool fall_back(engine::Token& token, bool no_reply_came);
  void fail(engine::Token& token, stats::DialEnd why, ActiveStartFailure&& failure);

  ActiveStartHandler* handler_;  // nullptr: cancelled
  ActiveStartPlan plan_;
  mpa::Initiator initiator_;
  port::TcpStream tcp_;
  shared::Outlook outlook_;
  State state_ = State::connecting;
  Time until_;
  int start_error_ = 0;
  bool silence_told_ = false;
};

}  // namespace weft::cm
