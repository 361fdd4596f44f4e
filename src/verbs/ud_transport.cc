#include "verbs/ud_transport.h"

#include <algorithm>

#include "config/options.h"
#include "device/gid_table.h"
#include "verbs/multicast_groups.h"
#include "wdp/multicast.h"

namespace weft::verbs {

// spec/wdp 5.4: DF is set except in big UD mode. UC shares the socket, and finds out
// what its path carries.
UdTransport::UdTransport(QueuePair& qp, drive::DatagramDriver& driver)
    : ConsumerBase(qp), DatagramSender(config::options().ud_big), driver_(driver) {}

// From RTR on there is somebody to take what comes.
void UdTransport::start(engine::Token& token) {
  const auto& gids = qp_.context().device().gids;
  const bool reliable = config::options().ud == config::Ud::reliable;
  queue_.emplace(static_cast<wdp::UdConsumer&>(*this),
                 wdp::UdParameters{.own_qpn = qp_.number(),
                                   .q_key = QKey{qp_.attributes().qkey},
                                   .crc = config::options().datagram_crc,
                                   .blocks_own_multicast = qp_.blocks_own_multicast()});
  if (reliable) queue_->resume(client_ = channels().add(*queue_));
  set_source(&*queue_);
  failed_ = false;
  tally_ = {};
  driver_.wdp_socket().demux().add(qp_.number(), *queue_);
  if (!groups_.empty()) qp_.adapter().groups().started(token, *this);
  for (const device::GidEntry& g : gids) driver_.set_interface(g.gid, g.ifindex);
}

void UdTransport::changed(engine::Token& token, QpState from) {
  if (qp_.state() < QpState::rtr) return;
  if (!queue_) start(token);
  if (from == QpState::sqe) {
    // What was flushed is under way all the same; nobody hears of it.
    if (client_ != 0) {
      channels().remove(client_);
      client_ = channels().add(*queue_);
    }
    queue_->resume(client_);
  }
  queue_->set_q_key(QKey{qp_.attributes().qkey});
  queue_->hold(qp_.state() == QpState::sqd);
  driver_.schedule(*this);
  driver_.settle(token);
}

void UdTransport::stopped(engine::Token& token) {
  driver_.remove(token, *this);
  if (!queue_) return;
  add_counts();
  driver_.wdp_socket().demux().remove(qp_.number());
  wanted_.reset();
  if (client_ != 0) channels().remove(std::exchange(client_, 0));
  if (channels().setup()) {
    // What waits for its receives waits for nobody now; and a peer that waits to hear of its last
    // message must not wait for a program that has ended.
    driver_.channels_resume(token, index_of(qp_.number()));
    channels().flush();
  }
  if (!groups_.empty()) qp_.adapter().groups().stopping(token, *this);
  set_source(nullptr);
  queue_.reset();
  driver_.settle(token);
}

void UdTransport::posted(engine::Token& token) {
  if (!queue_) return;
  if (driver_.waits_for(*this) && !qp_.receives().out()) driver_.receives_posted(token, *this);
  // A peer may send by a channel although this side does not.
  driver_.channels_resume(token, index_of(qp_.number()));
  driver_.posted(token, *this);
}

// --- multicast

Outcome<Ok> UdTransport::attach(engine::Token& token, const Gid& mgid) {
  if (!wdp::is_multicast(mgid)) return fail(Errc::invalid);
  // Once more is as good as once.
  if (std::find(groups_.begin(), groups_.end(), mgid) != groups_.end()) return Ok{};
  groups_.reserve(groups_.size() + 1);
  auto outcome = qp_.adapter().groups().attach(token, *this, mgid);
  if (outcome.ok()) groups_.push_back(mgid);
  return outcome;
}

bool UdTransport::detach(engine::Token& token, const Gid& mgid) {
  if (std::erase(groups_, mgid) == 0) return false;
  qp_.adapter().groups().detach(token, *this, mgid);
  return true;
}

void UdTransport::destroyed(engine::Token& token) {
  while (!groups_.empty()) detach(token, Gid{groups_.back()});
}

// --- what the queue asks and says

// spec/wdp-rd 3.
wdp::UdCarriage UdTransport::carriage(const wdp::UdDestination& to, Time now) {
  if (wdp::RdChannel* channel = channels().find(to.path)) return {.channel = channel};
  if (channels().is_refused(to.path, now)) return {};
  wanted_ = to.path;
  driver_.schedule_settling(*this);
  return {.later = true};
}

void UdTransport::receive_done(const work::Receive& r, Status status, const wdp::UdArrival& a) {
  Completion c{.wr_id = r.wr_id,
               .status = status,
               .opcode = WcOpcode::recv,
               .flags = wc_flag::kGrh,
               .byte_len = a.length,
               .source_qpn = a.source};
  if (a.has_immediate) {
    c.flags |= wc_flag::kWithImm;
    c.imm_or_rkey = a.immediate;
  }
  if (a.from.address.is_ipv4()) c.source_lid = static_cast<uint16_t>(a.from.address.ipv4());
  if (a.from.port != port_of(a.source)) c.source_port = a.from.port;
  count_received(qp_.counters().counters, stats::Kind::send, a.length, status);
  qp_.receive_done(c, a.solicited);
  driver_.schedule_settling(*this);  // the receive may have been taken in another visit
  // The sockets of groups are nobody's own, and do not wait for one of their members.
  // A channel keeps what comes.
  if (!a.multicast && !a.reliable && qp_.receives().out()) driver_.wait_for_receives(*this);
}

// Its status stands in the queue; the rest of the visit is done first.
void UdTransport::send_failed() {
  failed_ = true;
  driver_.schedule(*this);
}

void UdTransport::add_counts() {
  if (!queue_) return;
  tally_.publish(queue_->counters(), qp_.counters().counters, qp_.engine().counters());
}

void UdTransport::settled(engine::Token& token) {
  add_counts();
  if (wanted_) {
    driver_.open_channel(token, *wanted_);
    wanted_.reset();
    queue_->has_room();
  }
  if (std::exchange(failed_, false)) qp_.enter_send_error();
  qp_.visited(token);
}

}  // namespace weft::verbs
