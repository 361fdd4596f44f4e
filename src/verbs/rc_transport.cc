#include "verbs/rc_transport.h"

#include <algorithm>
#include <new>
#include <utility>

#include "base/log.h"
#include "device/device.h"
#include "verbs/rc_path.h"

namespace weft::verbs {
namespace {

using namespace std::chrono_literals;
constexpr Duration kLostPeerMost = 1s;

port::Address peer_of(const EstablishedStream& stream) {
  if (stream.loop) return *stream.loop;
  return stream.bytes ? stream.bytes->peer() : stream.tcp.peer();
}

}  // namespace

void RcTransport::adopt(engine::Token& token, EstablishedStream&& stream) {
  engine::Engine& engine = qp_.engine();
  rdmap::StreamConfig& config = stream.config;
  peer_gone_ = giving_up_ = ready_ = false;
  end_.reset();
  agreed_ = {.ird = config.mpa.ird, .ord = config.mpa.ord};
  config.rnr_retry = qp_.attributes().rnr_retry;
  config.min_rnr_timer = qp_.attributes().min_rnr_timer;
  config.counters = {&qp_.counters(), &engine.counter_block()};
  engine.counters().streams_opened.add();
  const port::Address peer = peer_of(stream);
  if (peer.length != 0) {
    qp_.counters().peer.set({.address = peer.gid(), .port = peer.port()});
  }
  const RcPathUsers users{static_cast<drive::StreamOwner&>(*this),
                          static_cast<work::Consumer&>(*this), qp_};
  engine.guard(
      token, [&] { driver_ = &open_rc_path(token, stream, users); },
      [&] {
        driver_ = nullptr;
        qp_.give_up_connection(token);
      });
  if (driver_ == nullptr) return;
  if (qp_.state() == QpState::sqd) driver_->stream().hold_requests(true);
  limit_reads();
  driver_->start(token, stream.early);
}

void RcTransport::close(engine::Token& token) {
  driver_->stream().close(token.now());
  driver_->settle(token);
}

void RcTransport::drop(engine::Token& token, bool abort) {
  if (driver_ == nullptr) return;
  agreed_.reset();
  ready_ = false;
  end_.reset();
  qp_.counters().peer.clear();
  drive::StreamDriver* d = std::exchange(driver_, nullptr);
  // IB tells the peer nothing, and a Terminate would.
  const auto part = [&] {
    if (abort && qp_.cm_managed()) {
      d->stream().abort(token.now());
    } else {
      d->stream().leave(token.now());
    }
    d->detach();
  };
  qp_.engine().guard(token, part, [&] {
    d->disown();
    d->on_no_memory(token);
  });
  d->stream().count_in(qp_.engine().counter_block().gone);  // may outlive this queue pair
  d->settle(token);
}

// Not where rdma_cm has agreed on the number that was asked for. 0 counts as 1, as ConnectX has it:
// programs that leave it at that ran there with Reads.
void RcTransport::limit_reads() {
  if (qp_.cm_managed()) return;
  driver_->stream().limit_reads(std::max<uint16_t>(1, qp_.attributes().max_rd_atomic));
}

// By number both sides offer what the device has, and what the program has set holds within that;
// rdma_cm has set what was asked for, before the peer had said what it can do.
void RcTransport::tell_agreed(QpAttributes& a) const {
  if (!agreed_) return;
  const auto most = [](uint16_t n) {
    return static_cast<uint8_t>(std::min<uint32_t>(n, device::kMaxReads));
  };
  a.max_rd_atomic = std::min(a.max_rd_atomic, most(agreed_->ord));
  a.max_dest_rd_atomic =
      qp_.cm_managed() ? most(agreed_->ird) : std::min(a.max_dest_rd_atomic, most(agreed_->ird));
}

std::optional<uint64_t> RcTransport::abandon_receive() {
  if (driver_ == nullptr) return {};
  const auto r = driver_->stream().abandon_receive();
  return r ? std::optional{r->wr_id} : std::nullopt;
}

// InfiniBand knows no end of a connection: a queue pair whose peer is gone stays as it is, until a
// request has waited for an answer as long as its retries take (spec/rdmap 5.5).
void RcTransport::await_lost_peer(engine::Token& token) {
  const work::SendQueue& requests = qp_.send_queue();
  if (giving_up_ || requests.head() == requests.tail()) return;
  giving_up_ = true;
  const QpAttributes& a = qp_.attributes();
  const Duration ack = std::chrono::nanoseconds{4096} * (int64_t{1} << a.timeout);
  const Duration patience =
      a.timeout == 0 ? kLostPeerMost : std::min(ack * (a.retry_cnt + 1), kLostPeerMost);
  qp_.wake_at(token, token.now() + patience);
}

void RcTransport::on_deadline(engine::Token& token) {
  if (peer_gone_) qp_.fail_connection(token, Status::retry_exceeded);
}

void RcTransport::posted(engine::Token& token) {
  if (peer_gone_) {
    await_lost_peer(token);
  } else if (driver_ != nullptr) {
    driver_->stream().receives_posted(token.now());
    driver_->posted(token);
  } else {
    qp_.await_connection(token);
  }
}

void RcTransport::changed(engine::Token& token, QpState) {
  if (driver_ == nullptr) return;
  const QpAttributes& a = qp_.attributes();
  driver_->stream().set_rnr(a.rnr_retry, a.min_rnr_timer);
  limit_reads();
  const bool held = qp_.state() == QpState::sqd;
  if (held) {
    // What gathers was posted before, and goes out.
    driver_->settle(token);
    if (driver_ == nullptr) return;
  }
  driver_->stream().hold_requests(held);
  driver_->settle(token);
}

void RcTransport::visited(engine::Token& token) {
  if (std::exchange(ready_, false) && qp_.observer() != nullptr) {
    qp_.observer()->stream_ready(token);
  }
  if (const auto end = std::exchange(end_, {})) {
    try {
      stream_over(token, *end);
    } catch (const std::bad_alloc&) {
      end_ = end;  // all of it comes again
      throw;
    }
  }
  qp_.visited(token);
}

void RcTransport::stream_over(engine::Token& token, const work::StreamEnd& end) {
  using Kind = work::StreamEnd::Kind;
  qp_.counters().peer.clear();
  if (!qp_.cm_managed() && (end.kind == Kind::peer_closed || end.broke())) {
    qp_.keep_unfinished_receive();
    peer_gone_ = true;
    await_lost_peer(token);
    return;
  }
  // spec/rdmap 5.4: FIN or RST inside an FPDU. A peer that is gone between two has just left.
  const bool inside_fpdu = end.broke() && driver_->stream().inside_fpdu();
  // First what needs no memory: what does may not find it.
  qp_.enter_error(token);
  switch (end.kind) {
    case Kind::protocol_error: {
      const bool protection = (end.error.layer == wire::Layer::rdmap && end.error.etype == 1) ||
                              (end.error.layer == wire::Layer::ddp && end.error.etype == 1);
      qp_.raise_event(end.error.layer == wire::Layer::llp ? EventType::qp_fatal
                      : protection                        ? EventType::qp_access_err
                                                          : EventType::qp_req_err);
      break;
    }
    case Kind::lost:
    case Kind::unanswered:
      if (inside_fpdu) qp_.raise_event(EventType::qp_fatal);
      break;
    default:
      break;
  }
  if (qp_.observer() != nullptr) qp_.observer()->stream_ended(token, end);
  if (end.kind == Kind::protocol_error || end.kind == Kind::terminated) {
    WEFT_LOG(info, "queue pair 0x%06x: %s: %s", qp_.number().value(),
             end.kind == Kind::terminated ? "the peer ended the stream" : "ended the stream",
             end.error.to_string().c_str());
  }
}

}  // namespace weft::verbs
