// RC: one RDMAP stream over TCP (docs/spec/mpa.md, rdmap.md).
#pragma once

#include "drive/stream_driver.h"
#include "verbs/consumer_base.h"

namespace weft::verbs {

class RcTransport final : public Transport,
                          private StreamAdopter,
                          private ConsumerBase<work::Consumer>,
                          private drive::StreamOwner {
 public:
  explicit RcTransport(QueuePair& qp) : ConsumerBase(qp) {}

  StreamAdopter* stream_adopter() override { return this; }
  void posted(engine::Token& token) override;
  void changed(engine::Token& token, QpState from) override;
  void on_deadline(engine::Token& token) override;
  void window_closed() override {
    if (driver_ != nullptr) driver_->window_closed();
  }
  bool connected() const override { return driver_ != nullptr; }
  bool draining() const override { return driver_ != nullptr && !driver_->stream().ended(); }
  bool idle() const override { return driver_ == nullptr || driver_->stream().requests_idle(); }
  void close(engine::Token& token) override;
  void drop(engine::Token& token, bool abort) override;
  void stopped(engine::Token&) override { peer_gone_ = giving_up_ = false; }
  std::optional<uint64_t> abandon_receive() override;
  void tell_agreed(QpAttributes& attributes) const override;

 private:
  void adopt(engine::Token& token, EstablishedStream&& stream) override;
  void keep_alive(const Keepalive& keepalive) override {
    if (driver_ != nullptr) driver_->bytes().keep_alive(keepalive);
  }
  // work::Consumer
  void receive_done(const work::Receive& r, Status status, const work::Arrival& a) override {
    qp_.receive_done(r, status, a);
  }
  void send_done(const work::SendWqe& wqe, Status status) override { qp_.send_done(wqe, status); }
  Status execute(work::SendWqe& wqe) override { return qp_.memory().execute(wqe); }
  void stream_ready() override { ready_ = true; }
  void stream_ended(const work::StreamEnd& end) override { end_ = end; }
  // drive::StreamOwner
  void visited(engine::Token& token) override;
  void driver_gone(engine::Token&) override { driver_ = nullptr; }

  void stream_over(engine::Token& token, const work::StreamEnd& end);
  void limit_reads();
  void await_lost_peer(engine::Token& token);

  struct ReadLimits {
    uint16_t ird;
    uint16_t ord;
  };

  drive::StreamDriver* driver_ = nullptr;  // owned by the engine
  std::optional<ReadLimits> agreed_;       // with the peer of the connection
  // What the stream has said in this visit.
  bool ready_ = false;
  std::optional<work::StreamEnd> end_;
  bool peer_gone_ = false;  // IB-style: the stream is over and the program not told
  bool giving_up_ = false;  // and the time runs until a request finds out
};

}  // namespace weft::verbs
