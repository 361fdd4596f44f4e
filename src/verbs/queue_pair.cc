#include "verbs/queue_pair.h"

#include <algorithm>

#include "base/log.h"
#include "device/device.h"

namespace weft::verbs {

Outcome<std::unique_ptr<QueuePair>> QueuePair::create(QpInit& init) {
  const QpTypeTraits* traits = find_type(init.type);
  if (traits == nullptr) return fail(Errc::not_supported);
  // Receives are the shared queue's, and so are their limits (ibv_create_qp(3)).
  if (init.srq != nullptr) init.limits.max_recv_wr = init.limits.max_recv_sge = 0;
  const QpLimits& l = init.limits;
  if (l.max_send_wr > device::kMaxQpWr || l.max_recv_wr > device::kMaxQpWr ||
      l.max_send_sge > device::kMaxSge || l.max_recv_sge > device::kMaxSge ||
      l.max_inline > device::kMaxInline) {
    return fail(Errc::invalid);
  }
  // A slot has room for so much in any case, and rdma_xclient sends inline without having asked for
  // it.
  init.limits.max_inline = std::max(init.limits.max_inline, rdmap::SendQueue::kLeastRoom);
  Adapter& adapter = init.context->adapter();
  engine::Engine& engine = adapter.next_engine();
  std::unique_ptr<QueuePair> qp{new QueuePair(init, *traits, engine)};
  const auto number = adapter.reserve_number(engine);
  if (!number.ok()) return fail(number.error());
  qp->number_ = *number;
  qp->counters_ = &adapter.counters().acquire(engine.number(), *number);
  auto h = engine.hold();
  qp->transport_ = traits->make_transport(h.token(), *qp);
  adapter.publish(h.token(), *qp);
  return qp;
}

QueuePair::QueuePair(const QpInit& init, const QpTypeTraits& traits, engine::Engine& engine)
    : context_(*init.context),
      adapter_(init.context->adapter()),
      engine_(engine),
      pd_(*init.pd),
      send_cq_(*init.send_cq),
      recv_cq_(*init.recv_cq),
      srq_(init.srq),
      traits_(traits),
      limits_(init.limits),
      signal_all_(init.signal_all),
      owner_(init.owner),
      send_queue_(init.limits.max_send_wr, init.limits.max_send_sge, init.limits.max_inline,
                  traits.slot_extra),
      receive_queue_(init.limits.max_recv_wr, init.limits.max_recv_sge) {
  pd_.add_ref();
  send_cq_.add_ref();
  recv_cq_.add_ref();
  if (srq_ != nullptr) srq_->add_ref();
}

QueuePair::~QueuePair() {
  if (number_ != Qpn{}) {
    auto h = engine_.hold();
    if (adapter_.bring_up() != nullptr) adapter_.bring_up()->abandon(h.token(), *this);
    if (transport_ != nullptr) {
      drop_connection(h.token(), false);
      transport_->stopped(h.token());
      transport_->destroyed(h.token());
    }
    if (observer_ != nullptr) std::exchange(observer_, nullptr)->pair_gone(h.token());
    if (srq_ != nullptr) srq_->forget(*this);
    engine_.forget(h.token(), *this);
    adapter_.release_number(h.token(), number_, known_);
    if (counters_ != stats::nowhere().qp) {
      adapter_.counters().release(engine_.number(), *counters_);
    }
    sent_.clear();
    received_.clear();
  }
  send_cq_.purge(number_);
  recv_cq_.purge(number_);
  if (srq_ != nullptr) srq_->drop_ref();
  send_cq_.drop_ref();
  recv_cq_.drop_ref();
  pd_.drop_ref();
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
  if (const auto r = transport_->abandon_receive()) unfinished_receive_ = r;
}

void QueuePair::on_deadline(engine::Token& token) {
  if (std::exchange(completion_lost_, false)) {
    WEFT_LOG(warn, "queue pair 0x%06x: a completion found no room in its queue; it is in error now",
             number_.value());
    raise_event(EventType::qp_fatal);
    leave_service(token);
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
    observer_->stream_ended(token, {.kind = rdmap::StreamEnd::Kind::local_error});
  }
}

void QueuePair::on_doorbell(engine::Token& token) {
  if (receive_wanted_.load(std::memory_order_relaxed)) receive_wanted_.exchange(false);
  if (state() == QpState::err && !draining()) {
    flush();
  } else {
    if (state() == QpState::sqe) flush_sends();
    transport_->posted(token);
  }
  publish(token);
}

void QueuePair::visited(engine::Token& token) {
  check_drained();
  publish(token);
}

// --- what the transport asks and says

bool QueuePair::take_receive(rdmap::Receive& out) {
  if (srq_ != nullptr) return srq_->take(out, *this);
  if (receive_queue_.take(out)) return true;
  // Said before the last look, so that a post in between is either seen here or rings.
  receive_wanted_.exchange(true);
  if (!receive_queue_.take(out)) return false;
  receive_wanted_.store(false, std::memory_order_relaxed);
  return true;
}

bool QueuePair::out_of_receives() {
  if (srq_ != nullptr) return srq_->empty_for(*this);
  if (!receive_queue_.empty()) return false;
  receive_wanted_.exchange(true);  // as in take_receive()
  return receive_queue_.empty();
}

void QueuePair::raise_event(EventType type) {
  context_.events().push({type, owner_});
}

bool QueuePair::raise_event_once(EventType type) {
  return context_.events().push_once({type, owner_});
}

// --- states

void QueuePair::enter_error(engine::Token& token) {
  set_state(QpState::err);
  attributes_.state = QpState::err;
  keep_unfinished_receive();
  transport_->stopped(token);
  receive_wanted_.exchange(true);  // posts from now on ring, and are flushed
  flush();
  if (srq_ != nullptr && !std::exchange(last_wqe_reported_, true)) {
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

// Into error by the program's wish, or over a fault that the peer has no part in.
void QueuePair::leave_service(engine::Token& token) {
  const bool was_connected = connected();
  if (adapter_.bring_up() != nullptr) adapter_.bring_up()->abandon(token, *this);
  drop_connection(token, true);
  enter_error(token);
  if (was_connected && observer_ != nullptr) {
    observer_->stream_ended(token, {.kind = rdmap::StreamEnd::Kind::closed});
  }
}

void QueuePair::flush_sends() {
  while (send_queue_.head() < send_queue_.tail()) {
    const rdmap::SendWqe& w = send_queue_.at(send_queue_.head());
    send_done(w, w.status == Status::success ? Status::flushed : w.status);
    send_queue_.free_head();
  }
}

// spec/rdmap 5.2: all that is posted completes, in order, also what is posted later.
void QueuePair::flush() {
  flush_sends();
  if (!unfinished_receive_) keep_unfinished_receive();
  if (unfinished_receive_) {
    receive_done({.wr_id = *unfinished_receive_}, Status::flushed, {});
    unfinished_receive_.reset();
  }
  rdmap::Receive r;
  while (srq_ == nullptr && receive_queue_.take(r)) receive_done(r, Status::flushed, {});
}

void QueuePair::reset(engine::Token& token) {
  const bool was_connected = connected();
  if (adapter_.bring_up() != nullptr) adapter_.bring_up()->abandon(token, *this);
  drop_connection(token, false);
  transport_->stopped(token);
  unfinished_receive_.reset();
  completion_lost_ = last_wqe_reported_ = received_in_rtr_ = false;
  cm_managed_ = false;
  engine_.set_deadline(token, *this, Time::never());
  while (send_queue_.head() < send_queue_.tail()) send_queue_.free_head();
  rdmap::Receive r;
  while (receive_queue_.take(r)) {
  }
  sent_.clear();
  received_.clear();
  send_cq_.purge(number_);
  recv_cq_.purge(number_);
  attributes_ = QpAttributes{};
  set_state(QpState::reset);
  if (was_connected && observer_ != nullptr) {
    observer_->stream_ended(token, {.kind = rdmap::StreamEnd::Kind::closed});
  }
}

void QueuePair::check_drained() {
  if (state() != QpState::sqd || !attributes_.sq_draining) return;
  // InfiniBand 10.3.1.5: what was begun is complete; the rest waits for RTS.
  if (!transport_->idle()) return;
  attributes_.sq_draining = false;
  if (attributes_.en_sqd_async_notify) raise_event(EventType::sq_drained);
}

}  // namespace weft::verbs
