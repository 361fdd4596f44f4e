// The passive side of a start-up: an accepted TCP connection until its MPA Request is there and
// somebody said yes or no (spec/mpa 2.8).
#pragma once

#include "cm/start_request.h"
#include "engine/engine.h"
#include "mpa/startup.h"
#include "stats/reasons.h"

namespace weft::cm {

class PassiveStart;
// Engine holder calls.
class PassiveStartHandler {
 public:
  virtual ~PassiveStartHandler() = default;
  // The Request is there. Answer it now or later by accept() or reject(); until then the
  // connection is parked.
  virtual void request_came(engine::Token& token, PassiveStart& start,
                            const mpa::Responder::Request& request) = 0;
  // It went away before it was answered, or before it said anything. The start is gone afterwards.
  virtual void start_gone(engine::Token& token, PassiveStart& start) = 0;
  // The time of PassiveStart::wait_until() is over: answer it now.
  virtual void start_overdue(engine::Token&, PassiveStart&) {}
  // There was no memory for a Request, and it is rejected: counts that among the handler's own
  // reasons. The default is rdma_cm's.
  virtual void count_no_memory(engine::Token& token) {
    stats::count(token.runtime().counters().cm_rejected, stats::CmRejection::no_memory);
  }
};

class PassiveStart final : public engine::EventHandler, public StartRequest {
 public:
  // The engine owns it. The Request must be there within 5 s. Where there is no memory (bad_alloc),
  // `tcp` stays the caller's.
  static PassiveStart& start(engine::Token& token, PassiveStartHandler& handler,
                             port::TcpStream&& tcp);

  // Both after request_came(); the start is gone afterwards. accept() gives the connection, or
  // nothing when it broke. `rd`: this end would go by datagrams.
  std::optional<Started> accept(engine::Token& token, const mpa::Offer& limits, Bytes private_data,
                                const std::optional<wire::RdOffer>& rd = {}) override;
  void reject(engine::Token& token, Bytes private_data) override;
  void wait_until(engine::Token& token, Time when) override;
  void drop(engine::Token& token) override;
  Gid sender() const override { return tcp_.peer().gid(); }
  bool speaks_for(const verbs::Context& context, Qpn peer) const override;
  // Another handler for what is to come.
  void hand_over(PassiveStartHandler& handler) { handler_ = &handler; }
  bool parked() const { return state_ == State::parked; }
  Time begun() const { return begun_; }
  // Closes it to make room for others. It counts as one whose Request is late.
  void evict(engine::Token& token) { gone(token, stats::StartRefusal::request_late); }
  // Bytes that the peer takes in a Reply: a kernel with siw crashes on more (spec/siw 2.7).
  size_t most_private_data() const;
  const port::TcpStream& tcp() const { return tcp_; }

  void on_ready(engine::Token& token, bool readable, bool writable) override;
  void on_deadline(engine::Token& token) override;
  void on_doorbell(engine::Token&) override {}
  void on_no_memory(engine::Token& token) override;
  void abandon_in_child() override { tcp_.close(); }

 private:
  enum class State : uint8_t { reading, parked, rejected };
  explicit PassiveStart(PassiveStartHandler& handler) : handler_(&handler) {}
  void gone(engine::Token& token, stats::StartRefusal why);
  bool write(const std::vector<std::byte>& frame);

  PassiveStartHandler* handler_;
  port::TcpStream tcp_;
  mpa::Responder responder_;
  Time begun_;
  State state_ = State::reading;
  bool plain_ = false;  // the peer knows no extension: it may be siw
  bool shut_ = false;
};

}  // namespace weft::cm
