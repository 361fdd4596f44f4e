// RD: messages to anybody, each answered by its receiver (spec/wdp-rd 6).
#pragma once

#include "drive/datagram_driver.h"
#include "drive/datagram_tally.h"
#include "verbs/consumer_base.h"
#include "verbs/destination.h"
#include "verbs/message_counts.h"
#include "wdp/rd_queue.h"

namespace weft::verbs {

class RdTransport final : public Transport,
                          private ConsumerBase<wdp::RdConsumer>,
                          private drive::DatagramSender {
 public:
  // `driver`: of the queue pair's own port.
  RdTransport(QueuePair& qp, drive::DatagramDriver& driver);

  // Null before RTR, and in error.
  wdp::RdQueue* queue() { return queue_ ? &*queue_ : nullptr; }

  void posted(engine::Token& token) override;
  void changed(engine::Token& token, QpState from) override;
  void on_deadline(engine::Token& token) override;
  // There is no connection.
  bool connected() const override { return false; }
  bool idle() const override { return !queue_ || queue_->idle(); }
  void close(engine::Token&) override {}
  void drop(engine::Token&, bool) override {}
  void stopped(engine::Token& token) override;
  // Those of half-arrived messages go back to their queue with stopped(): there may be many.
  std::optional<uint64_t> abandon_receive() override { return {}; }

 private:
  // wdp::RdConsumer
  const wdp::UdDestination& destination(const work::SendWqe& w) override {
    return destination_in(qp_.send_queue().extra_of(w));
  }
  wdp::UdCarriage carriage(const wdp::Path& to, Time now) override;
  wdp::PathRoom room(const wdp::Path& to) override { return room_of(qp_.context(), to); }
  void wants_turn() override { driver_.schedule(*this); }
  bool has_receive() override { return !qp_.receives().out(); }
  void give_back(work::TakenReceive r) override { qp_.receives().give_back(std::move(r)); }
  void receive_done(const work::Receive& r, Status status, const wdp::RdDelivery& d) override;
  void send_done(const work::SendWqe& wqe, Status status) override {
    count_sent(qp_.counters().counters, wqe, status);
    qp_.send_done(wqe, status);
  }
  // drive::DatagramSender
  void settled(engine::Token& token) override;
  void on_no_memory(engine::Token&) override {
    if (queue_) queue_->has_room();  // what was under way is tried again
    driver_.schedule(*this);
  }

  wdp::RdChannels& channels() const { return driver_.wdp_socket().channels(); }
  void add_counts();

  drive::DatagramDriver& driver_;
  std::optional<wdp::RdQueue> queue_;
  drive::RdQueueTally tally_;
  std::vector<wdp::Path> wanted_;  // channels to there are to be opened
};

}  // namespace weft::verbs
