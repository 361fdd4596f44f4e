#include "verbs/queue_pair.h"

#include <algorithm>

#include "base/log.h"
#include "device/device.h"

namespace weft::verbs {
namespace {

using namespace std::chrono_literals;
constexpr Duration kLostPeerMost = 1s;

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
  const auto number = adapter.assign_number(*qp, engine);
  if (!number.ok()) return fail(number.error());
  qp->number_ = *number;
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
    adapter_.release_number(number_);
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
  config.emss = tcp.emss();
  SystemRandom random;
  const int fd = tcp.fd();
  auto driver = std::make_unique<engine::StreamDriver>(
      static_cast<engine::StreamOwner&>(*this), std::move(tcp),
      static_cast<rdmap::Consumer&>(*this), config, static_cast<uint32_t>(random.next()),
      token.now());
  driver_ = driver.get();
  engine_.add(token, std::move(driver), fd, true, false);
  token_ = &token;
  driver_->start(token, early);
}

void QueuePair::disconnect(engine::Token& token) {
  if (driver_ == nullptr) {
    enter_error(token);
    publish();
    return;
  }
  token_ = &token;
  driver_->stream().close(token.now());
  driver_->settle(token);
}

void QueuePair::fail_connection(engine::Token& token, Status status) {
  if (send_queue_.head() < send_queue_.tail()) {
    send_queue_.at(send_queue_.head()).status = status;
  }
  enter_error(token);
  publish();
}

void QueuePair::drop_stream(engine::Token& token, bool abort) {
  if (driver_ == nullptr) return;
  engine::StreamDriver* d = std::exchange(driver_, nullptr);
  if (const auto r = d->stream().abandon_receive()) orphan_ = r;
  // IB tells the peer nothing, and a Terminate would.
  if (abort && cm_managed) {
    d->stream().abort(token.now());
  } else {
    d->stream().leave(token.now());
  }
  d->detach();
  d->settle(token);
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
  if (!peer_gone_) return;
  token_ = &token;
  fail_connection(token, Status::retry_exceeded);
}

void QueuePair::on_doorbell(engine::Token& token) {
  token_ = &token;
  receive_wanted_.store(false, std::memory_order_relaxed);
  if (state() == QpState::err) {
    flush();
  } else if (peer_gone_) {
    await_lost_peer(token);
  } else if (driver_ != nullptr) {
    driver_->stream().receives_posted(token.now());
    if (driver_ != nullptr) driver_->posted(token);
  }
  publish();
}

void QueuePair::visited(engine::Token& token) {
  token_ = &token;
  check_drained();
  publish();
}

// --- what the stream asks and says

bool QueuePair::take_receive(rdmap::Receive& out) {
  if (srq_ != nullptr) return srq_->take(out, *this);
  if (receive_queue_.take(out)) return true;
  // Said before the last look, so that a post in between is either seen here or rings.
  receive_wanted_.store(true, std::memory_order_seq_cst);
  if (!receive_queue_.take(out)) return false;
  receive_wanted_.store(false, std::memory_order_relaxed);
  return true;
}

void QueuePair::receive_done(const rdmap::Receive& r, Status status, const rdmap::Arrival& a) {
  Completion c{.wr_id = r.wr_id,
               .status = status,
               .opcode = a.write_with_immediate ? WcOpcode::recv_rdma_with_imm : WcOpcode::recv,
               .byte_len = a.length,
               .qpn = number_};
  if (a.has_immediate) {
    c.flags |= wc_flag::kWithImm;
    c.imm_or_rkey = a.immediate;
  } else if (a.invalidated) {
    c.flags |= wc_flag::kWithInv;
    c.imm_or_rkey = a.invalidated_stag.value();
  }
  received_.push_back({c, a.solicited});
}

namespace {

WcOpcode opcode_of(rdmap::Operation op) {
  switch (op) {
    case rdmap::Operation::write:
    case rdmap::Operation::write_immediate:
      return WcOpcode::rdma_write;
    case rdmap::Operation::read:
      return WcOpcode::rdma_read;
    case rdmap::Operation::fetch_add:
      return WcOpcode::fetch_add;
    case rdmap::Operation::compare_swap:
      return WcOpcode::comp_swap;
    case rdmap::Operation::local_invalidate:
      return WcOpcode::local_inv;
    case rdmap::Operation::bind_window:
      return WcOpcode::bind_mw;
    default:
      return WcOpcode::send;
  }
}

}  // namespace

void QueuePair::send_done(const rdmap::SendWqe& wqe, Status status) {
  if (status == Status::success && !wqe.signaled) return;
  sent_.push_back({{.wr_id = wqe.wr_id,
                    .status = status,
                    .opcode = opcode_of(wqe.operation),
                    .byte_len = wqe.length,
                    .qpn = number_},
                   false});
}

void QueuePair::publish() {
  if (!sent_.empty()) {
    send_cq_.push(sent_);
    sent_.clear();
  }
  if (!received_.empty()) {
    recv_cq_.push(received_);
    received_.clear();
  }
}

void QueuePair::stream_ready() {
  if (observer_ != nullptr) observer_->stream_ready(*token_);
}

void QueuePair::stream_ended(const rdmap::StreamEnd& end) {
  using Kind = rdmap::StreamEnd::Kind;
  engine::Token& token = *token_;
  if (!cm_managed && (end.kind == Kind::peer_closed || end.kind == Kind::lost)) {
    orphan_ = driver_->stream().abandon_receive();
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
      if (send_queue_.head() == send_queue_.tail()) raise_event(EventType::qp_fatal);
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
  flush();
  if (srq_ != nullptr) raise_event(EventType::qp_last_wqe_reached);
}

// design.md 4 rule 4: all that is posted completes, in order, also what is posted later.
void QueuePair::flush() {
  while (send_queue_.head() < send_queue_.tail()) {
    const rdmap::SendWqe& w = send_queue_.at(send_queue_.head());
    send_done(w, w.status == Status::success ? Status::flushed : w.status);
    send_queue_.free_head();
  }
  if (driver_ != nullptr && !orphan_) orphan_ = driver_->stream().abandon_receive();
  if (orphan_) {
    receive_done(*orphan_, Status::flushed, {});
    orphan_.reset();
  }
  rdmap::Receive r;
  while (srq_ == nullptr && receive_queue_.take(r)) receive_done(r, Status::flushed, {});
}

void QueuePair::reset(engine::Token& token) {
  if (driver_ != nullptr) {
    drop_stream(token, false);
  }
  orphan_.reset();
  peer_gone_ = giving_up_ = false;
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
}

void QueuePair::check_drained() {
  if (state() != QpState::sqd || !attributes_.sq_draining) return;
  if (send_queue_.head() != send_queue_.tail()) return;
  attributes_.sq_draining = false;
  if (attributes_.en_sqd_async_notify) raise_event(EventType::sq_drained);
}

// --- memory, as this queue pair may use it

Result<std::byte*, rdmap::MemoryFault> QueuePair::local(Stag lkey, uint64_t address,
                                                        uint64_t length, rdmap::Access need) {
  const Region* r = adapter_.memory().find(lkey);
  if (r == nullptr || r->window) return fail(rdmap::MemoryFault::invalid_stag);
  if (r->pd != &pd_) return fail(rdmap::MemoryFault::not_on_stream);
  return r->resolve(address, length, static_cast<uint32_t>(need));
}

Result<std::byte*, rdmap::MemoryFault> QueuePair::remote(Stag stag, TaggedOffset to,
                                                         uint64_t length, rdmap::Access need) {
  static constexpr auto flag = [](rdmap::Access a) -> uint32_t {
    switch (a) {
      case rdmap::Access::remote_write:
        return access::kRemoteWrite;
      case rdmap::Access::remote_read:
        return access::kRemoteRead;
      case rdmap::Access::remote_atomic:
        return access::kRemoteAtomic;
      case rdmap::Access::local_write:
        return access::kLocalWrite;
      case rdmap::Access::local_read:
        break;
    }
    return 0;
  };
  const Region* r = adapter_.memory().find(stag);
  if (r == nullptr) return fail(rdmap::MemoryFault::invalid_stag);
  if (r->pd != &pd_ || (r->window_qp != Qpn{} && r->window_qp != number_)) {
    return fail(rdmap::MemoryFault::not_on_stream);
  }
  // The queue pair's own rights come before the region's.
  if ((attributes_.access & flag(need)) == 0) return fail(rdmap::MemoryFault::access);
  return r->resolve(to.value(), length, flag(need));
}

Result<Ok, rdmap::MemoryFault> QueuePair::invalidate(Stag stag) {
  const Region* r = adapter_.memory().find(stag);
  if (r == nullptr) return fail(rdmap::MemoryFault::invalid_stag);
  if (r->pd != &pd_ || (r->window_qp != Qpn{} && r->window_qp != number_)) {
    return fail(rdmap::MemoryFault::not_on_stream);
  }
  // A type 1 window is its owner's to unbind; a region must allow remote access to be invalidated
  // from afar (wire.md 5.4).
  if (r->window && r->window_qp == Qpn{}) return fail(rdmap::MemoryFault::cannot_invalidate);
  if (!r->window &&
      (r->access & (access::kRemoteRead | access::kRemoteWrite | access::kRemoteAtomic)) == 0) {
    return fail(rdmap::MemoryFault::access);
  }
  return adapter_.memory().invalidate(stag);
}

Status QueuePair::execute(rdmap::SendWqe& wqe) {
  if (wqe.operation == rdmap::Operation::bind_window) {
    BindRequest b;
    std::memcpy(&b, wqe.payload(), sizeof b);
    return bind(b);
  }
  const Region* r = adapter_.memory().find(wqe.remote_stag);
  if (r == nullptr || r->pd != &pd_ || (r->window && r->window_qp != number_)) {
    return Status::window_bind;
  }
  return adapter_.memory().invalidate(wqe.remote_stag).ok() ? Status::success : Status::window_bind;
}

Status QueuePair::bind(const BindRequest& b) {
  Region bounds;
  bounds.pd = &pd_;
  if (b.length > 0) {
    Region* parent = adapter_.memory().find(b.lkey);
    if (parent == nullptr || parent->window || parent->pd != &pd_ ||
        (parent->access & access::kMwBind) == 0) {
      return Status::window_bind;
    }
    // A window that lets peers write needs a region that is writable here (InfiniBand 10.6.7.2.2).
    if ((b.access & (access::kRemoteWrite | access::kRemoteAtomic)) != 0 &&
        (parent->access & access::kLocalWrite) == 0) {
      return Status::window_bind;
    }
    const auto p = parent->resolve(b.address, b.length, 0);
    if (!p.ok()) return Status::window_bind;
    bounds.base = *p;
    bounds.iova = (b.access & access::kZeroBased) != 0 ? 0 : b.address;
    bounds.length = b.length;
    bounds.access = b.access;
    bounds.window_qp = b.type_2 ? number_ : Qpn{};
    bounds.parent = parent;
  }
  return adapter_.memory().bind_window(b.old_stag, b.fresh_stag, bounds).ok() ? Status::success
                                                                              : Status::window_bind;
}

}  // namespace weft::verbs
