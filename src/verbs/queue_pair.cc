#include "verbs/queue_pair.h"

#include <algorithm>

#include "base/log.h"
#include "device/device.h"

namespace weft::verbs {
namespace {

using namespace std::chrono_literals;
constexpr Duration kLostPeerMost = 1s;
// A host that answers nothing, not even TCP. Far longer than retries take on InfiniBand: networks
// that carry TCP have longer pauses than those that carry no other.
constexpr Duration kSilentPeer = 30s;

}  // namespace

Outcome<std::unique_ptr<QueuePair>> QueuePair::create(QpInit& init) {
  const QpLimits& l = init.limits;
  if (l.max_send_wr > device::kMaxQpWr || l.max_recv_wr > device::kMaxQpWr ||
      l.max_send_sge > device::kMaxSge || l.max_recv_sge > device::kMaxSge ||
      l.max_inline > device::kMaxInline) {
    return fail(Errc::invalid);
  }
  if (init.type != QpType::rc) return fail(Errc::not_supported);
  if (init.srq != nullptr) init.limits.max_recv_wr = init.limits.max_recv_sge = 0;
  // A slot has room for so much in any case, and rdma_xclient sends inline without having asked for
  // it.
  init.limits.max_inline = std::max(init.limits.max_inline, rdmap::SendQueue::kLeastRoom);
  Adapter& adapter = init.context->adapter();
  engine::Engine& engine = adapter.next_engine();
  std::unique_ptr<QueuePair> qp{new QueuePair(init, engine)};
  const auto number = adapter.reserve_number(engine);
  if (!number.ok()) return fail(number.error());
  qp->number_ = *number;
  qp->counters_ = &adapter.counters().acquire(engine.number(), *number);
  auto h = engine.hold();
  adapter.publish(h.token(), *qp);
  return qp;
}

QueuePair::QueuePair(const QpInit& init, engine::Engine& engine)
    : context_(*init.context),
      adapter_(init.context->adapter()),
      engine_(engine),
      pd_(*init.pd),
      send_cq_(*init.send_cq),
      recv_cq_(*init.recv_cq),
      srq_(init.srq),
      type_(init.type),
      limits_(init.limits),
      signal_all_(init.signal_all),
      owner_(init.owner),
      send_queue_(init.limits.max_send_wr, init.limits.max_send_sge, init.limits.max_inline),
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
    drop_stream(h.token(), false);
    if (observer_ != nullptr) std::exchange(observer_, nullptr)->pair_gone(h.token());
    if (srq_ != nullptr) srq_->forget(*this);
    engine_.forget(h.token(), *this);
    adapter_.release_number(h.token(), number_);
    adapter_.counters().release(engine_.number(), *counters_);
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

void QueuePair::connect(engine::Token& token, port::TcpStream tcp, rdmap::StreamConfig config,
                        Bytes early) {
  peer_gone_ = giving_up_ = false;
  config.rnr_retry = attributes_.rnr_retry;
  config.min_rnr_timer = attributes_.min_rnr_timer;
  tcp.choose_congestion_control();
  tcp.give_up_after(kSilentPeer);
  config.emss = tcp.emss();
  config.counters = {counters_, &engine_.counter_block()};
  engine_.counters().streams_opened.add();
  SystemRandom random;
  const int fd = tcp.fd();
  token_ = &token;
  const auto make = [&] {
    auto driver = std::make_unique<engine::StreamDriver>(
        static_cast<engine::StreamOwner&>(*this), std::move(tcp),
        static_cast<rdmap::Consumer&>(*this), config, static_cast<uint32_t>(random.next()),
        token.now());
    driver_ = driver.get();
    engine_.add(token, std::move(driver), fd, true, false);
  };
  engine_.guard(token, make, [&] {
    driver_ = nullptr;
    on_no_memory(token);
  });
  if (driver_ == nullptr) return;
  if (state() == QpState::sqd) driver_->stream().hold_requests(true);
  driver_->start(token, early);
}

// In error at once, as librdmacm's programs find it. But what was posted before still goes out, and
// receives are there for what is under way (wire.md 6, CLOSING); all the rest is flushed behind it.
void QueuePair::disconnect(engine::Token& token) {
  if (driver_ == nullptr) {
    enter_error(token);
    publish(token);
    return;
  }
  token_ = &token;
  attributes_.state = QpState::err;
  set_state(QpState::err);
  driver_->stream().close(token.now());
  driver_->settle(token);
}

bool QueuePair::draining() const {
  return driver_ != nullptr && !driver_->stream().ended();
}

void QueuePair::fail_connection(engine::Token& token, Status status) {
  if (send_queue_.head() < send_queue_.tail()) {
    send_queue_.at(send_queue_.head()).status = status;
  }
  enter_error(token);
  publish(token);
}

void QueuePair::drop_stream(engine::Token& token, bool abort) {
  if (driver_ == nullptr) return;
  engine::StreamDriver* d = std::exchange(driver_, nullptr);
  keep_orphan(d->stream());
  // IB tells the peer nothing, and a Terminate would.
  if (abort && cm_managed) {
    d->stream().abort(token.now());
  } else {
    d->stream().leave(token.now());
  }
  d->detach();
  d->stream().count_in(engine_.counter_block().gone);  // may outlive this queue pair
  d->settle(token);
}

void QueuePair::keep_orphan(rdmap::Stream& stream) {
  if (const auto r = stream.abandon_receive()) orphan_ = r->wr_id;
}

void QueuePair::driver_gone(engine::Token&) {
  driver_ = nullptr;
}

// InfiniBand knows no end of a connection: a queue pair whose peer is gone stays as it is, until a
// request has waited for an answer as long as its retries take (wire.md 6; here at most a second).
void QueuePair::await_lost_peer(engine::Token& token) {
  if (giving_up_ || send_queue_.head() == send_queue_.tail()) return;
  giving_up_ = true;
  const Duration ack = std::chrono::nanoseconds{4096} * (int64_t{1} << attributes_.timeout);
  const Duration patience = attributes_.timeout == 0
                                ? kLostPeerMost
                                : std::min(ack * (attributes_.retry_cnt + 1), kLostPeerMost);
  engine_.set_deadline(token, *this, token.now() + patience);
}

void QueuePair::on_deadline(engine::Token& token) {
  token_ = &token;
  if (std::exchange(completion_lost_, false)) {
    WEFT_LOG(warn, "queue pair 0x%06x: a completion found no room in its queue; it is in error now",
             number_.value());
    raise_event(EventType::qp_fatal);
    leave_service(token);
    publish(token);
  } else if (peer_gone_) {
    fail_connection(token, Status::retry_exceeded);
  }
}

// The connection is given up: there is nothing to be said for it.
void QueuePair::on_no_memory(engine::Token& token) {
  WEFT_LOG(warn, "queue pair 0x%06x: no memory for its connection; it is in error now",
           number_.value());
  token_ = &token;
  drop_stream(token, true);
  fail_connection(token, Status::retry_exceeded);
  if (observer_ != nullptr) {
    observer_->stream_ended(token, {.kind = rdmap::StreamEnd::Kind::local_error});
  }
}

void QueuePair::on_doorbell(engine::Token& token) {
  token_ = &token;
  receive_wanted_.exchange(false);
  if (state() == QpState::err && !draining()) {
    flush();
  } else if (peer_gone_) {
    await_lost_peer(token);
  } else if (driver_ != nullptr) {
    driver_->stream().receives_posted(token.now());
    if (driver_ != nullptr) driver_->posted(token);
  }
  publish(token);
}

void QueuePair::visited(engine::Token& token) {
  token_ = &token;
  check_drained();
  publish(token);
}

// --- what the stream asks and says

bool QueuePair::take_receive(rdmap::Receive& out) {
  if (srq_ != nullptr) return srq_->take(out, *this);
  if (receive_queue_.take(out)) return true;
  // Said before the last look, so that a post in between is either seen here or rings.
  receive_wanted_.exchange(true);
  if (!receive_queue_.take(out)) return false;
  receive_wanted_.store(false, std::memory_order_relaxed);
  return true;
}

void QueuePair::stream_ready() {
  if (observer_ != nullptr) observer_->stream_ready(*token_);
}

void QueuePair::stream_ended(const rdmap::StreamEnd& end) {
  using Kind = rdmap::StreamEnd::Kind;
  engine::Token& token = *token_;
  if (!cm_managed && (end.kind == Kind::peer_closed || end.kind == Kind::lost)) {
    keep_orphan(driver_->stream());
    peer_gone_ = true;
    await_lost_peer(token);
    return;
  }
  if (end.kind == Kind::protocol_error || end.kind == Kind::terminated) {
    WEFT_LOG(info, "queue pair 0x%06x: %s: %s", number_.value(),
             end.kind == Kind::terminated ? "the peer ended the stream" : "ended the stream",
             end.error.to_string().c_str());
  }
  switch (end.kind) {
    case Kind::protocol_error: {
      const bool protection = (end.error.layer == wire::Layer::rdmap && end.error.etype == 1) ||
                              (end.error.layer == wire::Layer::ddp && end.error.etype == 1);
      raise_event(end.error.layer == wire::Layer::llp ? EventType::qp_fatal
                  : protection                        ? EventType::qp_access_err
                                                      : EventType::qp_req_err);
      break;
    }
    case Kind::lost:
      // wire.md 6: FIN or RST inside an FPDU. A peer that is gone between two has just left.
      if (driver_->stream().inside_fpdu()) raise_event(EventType::qp_fatal);
      break;
    default:
      break;
  }
  enter_error(token);
  if (observer_ != nullptr) observer_->stream_ended(token, end);
}

void QueuePair::raise_event(EventType type) {
  context_.events().push({type, owner_});
}

// --- states

void QueuePair::enter_error(engine::Token&) {
  set_state(QpState::err);
  attributes_.state = QpState::err;
  peer_gone_ = giving_up_ = false;
  receive_wanted_.exchange(true);  // posts from now on ring, and are flushed
  flush();
  if (srq_ != nullptr && !std::exchange(last_wqe_told_, true)) {
    raise_event(EventType::qp_last_wqe_reached);
  }
}

// Into error by the program's wish, or over a fault that the peer has no part in.
void QueuePair::leave_service(engine::Token& token) {
  const bool was_connected = connected();
  if (adapter_.bring_up() != nullptr) adapter_.bring_up()->abandon(token, *this);
  drop_stream(token, true);
  enter_error(token);
  if (was_connected && observer_ != nullptr) {
    observer_->stream_ended(token, {.kind = rdmap::StreamEnd::Kind::closed});
  }
}

// design.md 4 rule 4: all that is posted completes, in order, also what is posted later.
void QueuePair::flush() {
  while (send_queue_.head() < send_queue_.tail()) {
    const rdmap::SendWqe& w = send_queue_.at(send_queue_.head());
    send_done(w, w.status == Status::success ? Status::flushed : w.status);
    send_queue_.free_head();
  }
  if (driver_ != nullptr && !orphan_) keep_orphan(driver_->stream());
  if (orphan_) {
    receive_done({.wr_id = *orphan_}, Status::flushed, {});
    orphan_.reset();
  }
  rdmap::Receive r;
  while (srq_ == nullptr && receive_queue_.take(r)) receive_done(r, Status::flushed, {});
}

void QueuePair::reset(engine::Token& token) {
  const bool was_connected = connected();
  if (adapter_.bring_up() != nullptr) adapter_.bring_up()->abandon(token, *this);
  drop_stream(token, false);
  orphan_.reset();
  peer_gone_ = giving_up_ = completion_lost_ = last_wqe_told_ = heard_in_rtr_ = false;
  cm_managed = false;
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
  if (driver_ != nullptr && !driver_->stream().requests_idle()) return;
  attributes_.sq_draining = false;
  if (attributes_.en_sqd_async_notify) raise_event(EventType::sq_drained);
}

}  // namespace weft::verbs
