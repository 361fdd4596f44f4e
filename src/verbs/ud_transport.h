// UD: datagrams to anybody, from anybody (spec/wdp-ud 1).
#pragma once

#include "drive/datagram_driver.h"
#include "verbs/consumer_base.h"
#include "verbs/destination.h"
#include "verbs/message_counts.h"

namespace weft::verbs {

class UdTransport final : public Transport,
                          private GroupMember,
                          private ConsumerBase<wdp::UdConsumer>,
                          private drive::DatagramSender {
 public:
  // `driver`: of the queue pair's own port.
  UdTransport(QueuePair& qp, drive::DatagramDriver& driver);

  // Null before RTR, and in error.
  wdp::UdQueue* queue() { return queue_ ? &*queue_ : nullptr; }
  drive::DatagramDriver& driver() const { return driver_; }

  const Context& context() const { return qp_.context(); }

  GroupMember* group_member() override { return this; }
  void posted(engine::Token& token) override;
  void changed(engine::Token& token, QpState from) override;
  // There is no connection.
  bool connected() const override { return false; }
  bool idle() const override { return !queue_ || queue_->idle(); }
  void close(engine::Token&) override {}
  void drop(engine::Token&, bool) override {}
  void stopped(engine::Token& token) override;
  void destroyed(engine::Token& token) override;
  std::optional<uint64_t> abandon_receive() override { return {}; }

 private:
  // GroupMember
  Outcome<Ok> attach(engine::Token& token, const Gid& mgid) override;
  bool detach(engine::Token& token, const Gid& mgid) override;
  bool attached() const override { return !groups_.empty(); }
  // wdp::UdConsumer
  const wdp::UdDestination& destination(const work::SendWqe& w) override {
    return destination_in(qp_.send_queue().extra_of(w));
  }
  wdp::UdCarriage carriage(const wdp::UdDestination& to, Time now) override;
  wdp::PathRoom room(const wdp::Path& to) override { return room_of(qp_.context(), to); }
  void wants_turn() override { driver_.schedule(*this); }
  void send_done(const work::SendWqe& wqe, Status status) override {
    // What a channel tells of comes in another's visit.
    driver_.schedule_settling(*this);
    count_sent(qp_.counters().counters, wqe, status);
    qp_.send_done(wqe, status);
  }
  bool take_receive(work::Receive& out) override {
    driver_.schedule_settling(*this);  // to be counted, whatever comes of it
    return qp_.receives().take(out);
  }
  void give_back(work::TakenReceive r) override { qp_.receives().give_back(std::move(r)); }
  void receive_done(const work::Receive& r, Status status, const wdp::UdArrival& a) override;
  void send_failed() override;
  // drive::DatagramSender
  void settled(engine::Token& token) override;
  // What was to be sent is tried again; what came is lost.
  void on_no_memory(engine::Token&) override { driver_.schedule(*this); }

  void start(engine::Token& token);
  wdp::RdChannels& channels() const { return driver_.wdp_socket().channels(); }
  void add_counts();

  drive::DatagramDriver& driver_;
  std::optional<wdp::UdQueue> queue_;
  drive::UdTally tally_;
  wdp::ClientId client_ = 0;         // of channels; 0: none
  std::optional<wdp::Path> wanted_;  // a channel to there is to be opened
  bool failed_ = false;
  std::vector<Gid> groups_;  // attached to
};

}  // namespace weft::verbs
