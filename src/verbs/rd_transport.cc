#include "verbs/rd_transport.h"

#include <algorithm>
#include <utility>

#include "config/options.h"

namespace weft::verbs {

// Whatever the option ud says: without channels there is no RD.
RdTransport::RdTransport(QueuePair& qp, drive::DatagramDriver& driver)
    : ConsumerBase(qp), DatagramSender(config::options().ud_big), driver_(driver) {
  if (!channels().setup()) {
    driver_.enable_channels(port_of(qp.number()), config::options().datagram_crc);
  }
}

void RdTransport::changed(engine::Token& token, QpState) {
  if (qp_.state() < QpState::rtr) return;
  const QpAttributes& a = qp_.attributes();
  if (!queue_) {
    queue_.emplace(channels(), static_cast<wdp::RdConsumer&>(*this),
                   wdp::RdQueue::Parameters{.own_qpn = qp_.number()});
    tally_ = {};
    set_source(&*queue_);
    for (const device::GidEntry& g : qp_.context().device().gids) {
      driver_.set_interface(g.gid, g.ifindex);
    }
  }
  queue_->set_attributes(QKey{a.qkey}, a.rnr_retry);
  queue_->hold(qp_.state() == QpState::sqd);
  driver_.schedule(*this);
  driver_.settle(token);
}

void RdTransport::posted(engine::Token& token) {
  if (!queue_) return;
  queue_->posted();
  driver_.posted(token, *this);
}

// What was refused may be said again.
void RdTransport::on_deadline(engine::Token& token) {
  if (!queue_) return;
  driver_.schedule(*this);
  driver_.settle(token);
}

void RdTransport::stopped(engine::Token& token) {
  driver_.remove(token, *this);
  if (!queue_) return;
  add_counts();
  wanted_.clear();
  set_source(nullptr);
  queue_.reset();
  // A peer that waits to hear of its last message must not wait for a program that has ended.
  channels().flush();
  driver_.settle(token);
}

wdp::UdCarriage RdTransport::carriage(const wdp::Path& to, Time now) {
  if (wdp::RdChannel* channel = channels().find(to)) return {.channel = channel};
  if (channels().is_refused(to, now)) return {};
  if (std::find(wanted_.begin(), wanted_.end(), to) == wanted_.end()) wanted_.push_back(to);
  driver_.schedule_settling(*this);
  return {.later = true};
}

void RdTransport::receive_done(const work::Receive& r, Status status, const wdp::RdDelivery& d) {
  Completion c{.wr_id = r.wr_id,
               .status = status,
               .opcode = d.write ? WcOpcode::recv_rdma_with_imm : WcOpcode::recv,
               .byte_len = d.length,
               .source_qpn = d.source};
  if (d.immediate) {
    c.flags |= wc_flag::kWithImm;
    c.imm_or_rkey = *d.immediate;
  }
  if (d.from.address.is_ipv4()) c.source_lid = static_cast<uint16_t>(d.from.address.ipv4());
  if (d.from.port != port_of(d.source)) c.source_port = d.from.port;
  count_received(qp_.counters().counters, d.write ? stats::Kind::write : stats::Kind::send,
                 d.length, status);
  qp_.receive_done(c, d.solicited);
  driver_.schedule_settling(*this);
}

void RdTransport::add_counts() {
  if (queue_) {
    tally_.publish(queue_->responder(), qp_.counters().counters, qp_.engine().counters());
  }
}

void RdTransport::settled(engine::Token& token) {
  add_counts();
  if (!wanted_.empty()) {
    // One for which there is no memory stays.
    for (; !wanted_.empty(); wanted_.pop_back()) driver_.open_channel(token, wanted_.back());
    queue_->has_room();
  }
  if (queue_) qp_.wake_at(token, queue_->deadline());
  qp_.visited(token);
}

}  // namespace weft::verbs
