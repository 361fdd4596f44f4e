// UC: a WDP connection over UDP (spec/wdp-uc 1).
#pragma once

#include "drive/uc_link.h"
#include "verbs/consumer_base.h"
#include "verbs/message_counts.h"

namespace weft::verbs {

class UcTransport final : public Transport,
                          private DatagramCaller,
                          private ConsumerBase<wdp::UcConsumer>,
                          private drive::UcLinkOwner {
 public:
  // `driver`: of the queue pair's own port.
  UcTransport(QueuePair& qp, drive::DatagramDriver& driver) : ConsumerBase(qp), driver_(driver) {}

  DatagramCaller* datagram_caller() override { return this; }
  void posted(engine::Token& token) override;
  void changed(engine::Token& token, QpState from) override;
  bool connected() const override { return link_ != nullptr; }
  bool draining() const override;
  bool idle() const override;
  void window_closed() override {
    if (link_ != nullptr) link_->driver().detach_memory(*link_);
  }
  void close(engine::Token& token) override;
  void drop(engine::Token& token, bool abort) override;
  void stopped(engine::Token& token) override;
  // That of a half-arrived message goes back to its queue with the connection.
  std::optional<uint64_t> abandon_receive() override { return {}; }

 private:
  // DatagramCaller
  wdp::Offer offer(const drive::DatagramDriver& driver, const wdp::Path& path) const override;
  void call(engine::Token& token, drive::DatagramDriver& driver, const wdp::Offer& offer,
            const wdp::Path& path, Qpn destination, bool ib_style) override;
  bool accept(engine::Token& token, drive::DatagramDriver& driver, const wdp::RequestKey& key,
              const wdp::Offer& offer) override;
  wdp::UcConnection& expect_call(engine::Token& token) override;
  void adopt(engine::Token& token, const wdp::UcParameters& session,
             const wdp::Endpoint& from) override;
  drive::UcLink* link() const override { return link_; }
  drive::DatagramDriver& driver() const override { return driver_; }
  // wdp::UcConsumer
  void give_back(work::TakenReceive r) override { qp_.receives().give_back(std::move(r)); }
  void receive_done(const work::Receive& r, Status status, const work::Arrival& a) override;
  void send_done(const work::SendWqe& wqe, Status status) override {
    count_sent(qp_.counters().counters, wqe, status);
    qp_.send_done(wqe, status);
  }
  Status execute(work::SendWqe& wqe) override { return qp_.memory().execute(wqe); }
  void stream_ready() override;
  void stream_ended(const work::StreamEnd& end) override { end_ = end; }
  void remote_error(wire::TermError error) override;
  void send_failed() override;
  void window_opened() override { link_->driver().schedule(*link_); }
  // drive::UcLinkOwner
  void visited(engine::Token& token, drive::UcLink& link) override;
  void link_lost(engine::Token& token, drive::UcLink& link) override;

  void start_link(engine::Token& token, drive::DatagramDriver& driver);
  void forget_what_was_said();
  void call_failed(engine::Token& token);
  void stream_over(engine::Token& token);
  void leave_link(engine::Token& token);
  void give_back_receive();
  void fail_posted(engine::Token& token);

  drive::DatagramDriver& driver_;
  drive::UcLink* link_ = nullptr;  // owned by the engine
  // What the connection has said in this visit.
  bool ready_ = false;
  bool send_failed_ = false;
  std::optional<work::StreamEnd> end_;
  bool peer_gone_ = false;  // IB-style: the connection is over and the program not told
};

}  // namespace weft::verbs
