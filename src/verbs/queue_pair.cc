#include "verbs/queue_pair.h"

#include <algorithm>

#include "base/log.h"
#include "device/device.h"
#include "verbs/qp_attributes.h"

namespace weft::verbs {

Outcome<std::unique_ptr<QueuePair>> QueuePair::create(QpInit& init) {
  const QpTypeTraits* traits = find_type(init.type);
  if (traits == nullptr) return fail(Errc::not_supported);
  // Receives are the shared queue's, and so are their limits (ibv_create_qp(3)).
  if (init.srq != nullptr) init.limits.max_recv_wr = init.limits.max_recv_sge = 0;
  QpLimits& l = init.limits;
  // A queue that takes requests takes those of one segment, as adapters' do, whose places have room
  // for it: programs that ask for none post them.
  if (l.max_send_wr > 0) l.max_send_sge = std::max(l.max_send_sge, 1U);
  if (l.max_recv_wr > 0) l.max_recv_sge = std::max(l.max_recv_sge, 1U);
  if (l.max_send_wr > device::kMaxQpWr || l.max_recv_wr > device::kMaxQpWr ||
      l.max_send_sge > device::kMaxSge || l.max_recv_sge > device::kMaxSge ||
      l.max_inline > device::kMaxInline) {
    return fail(Errc::invalid);
  }
  // A slot has room for so much in any case, and programs send inline without having asked for it.
  l.max_inline = std::max(
      l.max_inline, std::min(device::kMaxInline, work::SendQueue::least_room(l.max_send_sge)));
  Adapter& adapter = init.context->adapter();
  engine::Engine& engine = adapter.next_engine();
  std::unique_ptr<QueuePair> qp{new QueuePair(init, *traits, engine)};
  const auto number = adapter.ports().reserve_number(engine);
  if (!number.ok()) return fail(number.error());
  qp->number_ = *number;
  qp->counters_ = &adapter.counters().acquire(engine.number(), *number);
  auto h = engine.hold();
  qp->transport_ = traits->make_transport(h.token(), *qp);
  adapter.ports().publish(h.token(), *qp);
  return qp;
}

QueuePair::QueuePair(const QpInit& init, const QpTypeTraits& traits, engine::Engine& engine)
    : init_(init),
      traits_(traits),
      engine_(engine),
      send_queue_(init.limits.max_send_wr, init.limits.max_send_sge, init.limits.max_inline,
                  traits.slot_extra),
      receives_(*this, init.srq, init.limits),
      completions_(*init.send_cq, *init.recv_cq) {
  pd().add_ref();
  send_cq().add_ref();
  recv_cq().add_ref();
  if (srq() != nullptr) srq()->add_ref();
}

QueuePair::~QueuePair() {
  if (number_ != Qpn{}) {
    auto h = engine_.hold();
    abandon_bring_up(h.token());
    if (transport_ != nullptr) {
      drop_connection(h.token(), false);
      transport_->stopped(h.token());
      transport_->destroyed(h.token());
    }
    if (observer_ != nullptr) std::exchange(observer_, nullptr)->pair_gone(h.token());
    receives_.leave();
    engine_.forget(h.token(), *this);
    completions_.clear();
    // Before the number is another one's.
    send_cq().purge(number_);
    recv_cq().purge(number_);
    adapter().ports().release_number(h.token(), number_, known_);
    if (counters_ != stats::nowhere().qp) {
      adapter().counters().release(engine_.number(), *counters_);
    }
  }
  if (srq() != nullptr) srq()->drop_ref();
  send_cq().drop_ref();
  recv_cq().drop_ref();
  pd().drop_ref();
}

// --- receives of the program

PostFault QueuePair::receive_fault(uint32_t segments) const {
  using Rule = PostFault::Rule;
  if (srq() != nullptr) return {.rule = Rule::shared_receives};
  if (state() == QpState::reset) return {.rule = Rule::state};
  if (segments > limits().max_recv_sge) {
    return {.rule = Rule::segments, .asked = segments, .limit = limits().max_recv_sge};
  }
  return {.rule = Rule::full, .limit = limits().max_recv_wr};
}

Outcome<Ok> QueuePair::post_receive(const ReceiveRequest* requests, size_t count, size_t& posted) {
  posted = 0;
  if (srq() != nullptr || state() == QpState::reset) return fail(Errc::invalid);
  auto outcome = receives_.post(requests, count, posted);
  // A message may wait for it, or a flush.
  if (posted > 0 && (receives_.wanted() || state() == QpState::err)) ring();
  return outcome;
}

// --- connection

Outcome<Ok> QueuePair::attach_multicast(const Gid& mgid) {
  GroupMember* member = transport_->group_member();
  if (member == nullptr) return fail(Errc::invalid);
  auto h = engine_.hold();
  return member->attach(h.token(), mgid);
}

Outcome<Ok> QueuePair::detach_multicast(const Gid& mgid) {
  GroupMember* member = transport_->group_member();
  if (member == nullptr) return fail(Errc::invalid);
  auto h = engine_.hold();
  if (!member->detach(h.token(), mgid)) return fail(Errc::invalid);
  return Ok{};
}

bool QueuePair::in_groups() {
  const GroupMember* member = transport_->group_member();
  if (member == nullptr) return false;
  auto h = engine_.hold();
  return member->attached();
}

// In error at once, as librdmacm's programs find it. But what was posted before still goes out, and
// receives are there for what is under way (spec/rdmap 5.3); all the rest is flushed behind it.
void QueuePair::disconnect(engine::Token& token) {
  if (!connected()) {
    enter_error(token);
    publish(token);
    return;
  }
  attributes_.state = QpState::err;
  set_state(QpState::err);
  transport_->close(token);
}

void QueuePair::fail_connection(engine::Token& token, Status status) {
  if (send_queue_.head() < send_queue_.tail()) {
    send_queue_.at(send_queue_.head()).status = status;
  }
  enter_error(token);
  publish(token);
}

void QueuePair::drop_connection(engine::Token& token, bool abort) {
  keep_unfinished_receive();
  transport_->drop(token, abort);
}

void QueuePair::keep_unfinished_receive() {
  if (const auto r = transport_->abandon_receive()) since_reset_.unfinished_receive = r;
}

void QueuePair::on_deadline(engine::Token& token) {
  if (std::exchange(since_reset_.completion_lost, false)) {
    WEFT_LOG(warn, "queue pair 0x%06x: a completion found no room in its queue; it is in error now",
             number_.value());
    leave_service(token);
    raise_event(EventType::qp_fatal);
  } else {
    transport_->on_deadline(token);
  }
  publish(token);
}

// The connection is given up: there is nothing to be said for it.
void QueuePair::give_up_connection(engine::Token& token) {
  WEFT_LOG(warn, "queue pair 0x%06x: no memory for its connection; it is in error now",
           number_.value());
  drop_connection(token, true);
  fail_connection(token, Status::retry_exceeded);
  if (observer_ != nullptr) {
    observer_->stream_ended(token, {.kind = work::StreamEnd::Kind::local_error});
  }
}

void QueuePair::on_doorbell(engine::Token& token) {
  receives_.heard();
  if (state() == QpState::err && !draining()) {
    flush();
  } else {
    if (state() == QpState::sqe) flush_sends();
    transport_->posted(token);
  }
  publish(token);
}

void QueuePair::visited(engine::Token& token) {
  publish(token);
  check_drained();
}

// --- completions

void QueuePair::receive_done(const work::Receive& r, Status status, const work::Arrival& a) {
  // InfiniBand 11.6.3.2: a message has come before the program knows that the peer is ready.
  if (state() == QpState::rtr && !std::exchange(since_reset_.received_in_rtr, true)) {
    raise_event(EventType::comm_est);
  }
  receive_done(completion_of(r, status, a), a.solicited);
}

void QueuePair::receive_done(Completion c, bool solicited) {
  c.qpn = number_;
  count_error(c.status);
  completions_.received(c, solicited);
}

void QueuePair::send_done(const work::SendWqe& wqe, Status status) {
  if (status == Status::success && !wqe.signaled) return;
  count_error(status);
  Completion c = completion_of(wqe, status);
  c.qpn = number_;
  c.slot_of = &send_queue_;
  send_queue_.report_head();
  completions_.sent(c);
}

void QueuePair::count_error(Status status) {
  if (status == Status::success) return;
  counters_->counters.completion_errors.add();
  static_assert(stats::kErrorStatuses == static_cast<size_t>(Status::general));
  stats::count(engine_.counters().completion_error, static_cast<size_t>(status) - 1);
}

void QueuePair::publish(engine::Token& token) {
  if (!completions_.publish()) since_reset_.completion_lost = true;
  if (!since_reset_.completion_lost || state() == QpState::err) return;
  // A program that waits for what was lost would wait for ever. Not here, in the middle of the
  // stream's visit. Said with each visit until then: the transport sets the same deadline.
  engine_.set_deadline(token, *this, token.now());
}

// --- states

void QueuePair::enter_error(engine::Token& token) {
  set_state(QpState::err);
  attributes_.state = QpState::err;
  keep_unfinished_receive();
  transport_->stopped(token);
  receives_.want();  // posts from now on ring, and are flushed
  flush();
  // Before anything is told of the end, here and by the observer: who hears of it in another thread
  // may poll for the last time, and destroy the queue pair.
  publish(token);
  if (srq() != nullptr && !std::exchange(since_reset_.last_wqe_reported, true)) {
    raise_event(EventType::qp_last_wqe_reached);
  }
}

void QueuePair::enter_send_error() {
  if (state() == QpState::err) return;
  attributes_.state = QpState::sqe;
  attributes_.sq_draining = false;
  set_state(QpState::sqe);
  flush_sends();
}

void QueuePair::abandon_bring_up(engine::Token& token) {
  if (BringUp* bring_up = adapter().bring_up()) bring_up->abandon(token, *this);
}

void QueuePair::await_connection(engine::Token& token) {
  BringUp* bring_up = adapter().bring_up();
  if (bring_up != nullptr && send_queue_.head() < send_queue_.tail()) {
    bring_up->request_waits(token, *this);
  }
}

// Into error by the program's wish, or over a fault that the peer has no part in.
void QueuePair::leave_service(engine::Token& token) {
  const bool was_connected = connected();
  abandon_bring_up(token);
  drop_connection(token, true);
  enter_error(token);
  if (was_connected && observer_ != nullptr) {
    observer_->stream_ended(token, {.kind = work::StreamEnd::Kind::closed});
  }
}

void QueuePair::flush_sends() {
  while (send_queue_.head() < send_queue_.tail()) {
    const work::SendWqe& w = send_queue_.at(send_queue_.head());
    // Peers of an RD queue pair answer in any order.
    const bool done = w.answered && init_.type == QpType::rd;
    send_done(w, w.status == Status::success && !done ? Status::flushed : w.status);
    send_queue_.free_head();
  }
}

// spec/rdmap 5.2: all that is posted completes, in order, also what is posted later.
void QueuePair::flush() {
  flush_sends();
  if (!since_reset_.unfinished_receive) keep_unfinished_receive();
  if (since_reset_.unfinished_receive) {
    receive_done({.wr_id = *since_reset_.unfinished_receive}, Status::flushed, {});
    since_reset_.unfinished_receive.reset();
  }
  work::Receive r;
  while (receives_.take_own(r)) receive_done(r, Status::flushed, {});
}

void QueuePair::reset(engine::Token& token) {
  const bool was_connected = connected();
  abandon_bring_up(token);
  drop_connection(token, false);
  transport_->stopped(token);
  since_reset_ = {};
  engine_.set_deadline(token, *this, Time::never());
  while (send_queue_.head() < send_queue_.tail()) send_queue_.free_head();
  work::Receive r;
  while (receives_.take_own(r)) {
  }
  completions_.clear();
  send_cq().purge(number_);
  recv_cq().purge(number_);
  send_queue_.forget_completions();
  attributes_ = QpAttributes{};
  set_state(QpState::reset);
  if (was_connected && observer_ != nullptr) {
    observer_->stream_ended(token, {.kind = work::StreamEnd::Kind::closed});
  }
}

void QueuePair::check_drained() {
  if (state() != QpState::sqd || !attributes_.sq_draining) return;
  // InfiniBand 10.3.1.5: what was begun is complete; the rest waits for RTS.
  if (!transport_->idle()) return;
  attributes_.sq_draining = false;
  if (attributes_.en_sqd_async_notify) raise_event(EventType::sq_drained);
}

// --- the program's way through the states (InfiniBand 10.3.1, spec/rdmap 5.2)

Outcome<Ok> QueuePair::modify(const QpAttributes& a, uint32_t mask) {
  auto h = engine_.hold();
  Outcome<Ok> outcome{fail(Errc::no_memory)};
  // What has begun without memory for it does not come about by itself later.
  engine_.guard(
      h.token(), [&] { outcome = apply(h.token(), a, mask); },
      [&] {
        if (state() > QpState::init) leave_service(h.token());
      });
  publish(h.token());
  return outcome;
}

Outcome<Ok> QueuePair::apply(engine::Token& token, const QpAttributes& a, uint32_t mask) {
  const QpState from = state();
  const QpState to = (mask & qp_mask::kState) != 0 ? a.state : from;
  if ((mask & qp_mask::kCurState) != 0 && a.cur_state != from) {
    WEFT_LOG_REFUSAL("queue pair 0x%06x: cur_qp_state is %s; it is in state %s", number_.value(),
                     name_of(a.cur_state), name_of(from));
    return fail(Errc::invalid);
  }
  if (!traits_.allows(from, to, mask)) {
    WEFT_LOG_REFUSAL("queue pair 0x%06x: ibv_modify_qp: %s", number_.value(),
                     traits_.why_not(from, to, mask).c_str());
    return fail(Errc::invalid);
  }
  if (auto good = check_attributes(*this, a, mask); !good.ok()) return good;
  if (from == QpState::reset && to == QpState::init) {
    attributes_.access = traits_.access;
    attributes_.rnr_retry = traits_.rnr_retry;
  }
  store_attributes(attributes_, a, mask);
  switch (to) {
    case QpState::reset:
      reset(token);
      return Ok{};
    case QpState::err:
      // After disconnect() it cuts short what still goes out.
      if (from != QpState::err || draining()) leave_service(token);
      return Ok{};
    case QpState::sqd:
      if (from != QpState::sqd) attributes_.sq_draining = true;
      break;
    default:
      break;
  }
  // What was posted by now in SQE, and rang too late.
  if (from == QpState::sqe) flush_sends();
  attributes_.state = to;
  set_state(to);
  transport_->changed(token, from);
  if (to == QpState::sqd) visited(token);
  if ((to == QpState::rtr || to == QpState::rts) && from != to) {
    if (BringUp* bring_up = adapter().bring_up()) bring_up->state_changed(token, *this);
  }
  return Ok{};
}

QpAttributes QueuePair::query() {
  auto h = engine_.hold();
  QpAttributes a = attributes_;
  a.state = a.cur_state = state();
  transport_->tell_agreed(a);
  return a;
}

}  // namespace weft::verbs
