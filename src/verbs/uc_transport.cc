#include "verbs/uc_transport.h"

#include "base/log.h"
#include "config/options.h"
#include "device/device.h"
#include "verbs/address_handle.h"

namespace weft::verbs {

using wdp::UcConnection;

// --- the connection

wdp::Offer UcTransport::offer(const drive::DatagramDriver& driver, const wdp::Path& path) const {
  const bool own_host = stays_on_host(qp_.context(), path);
  // The kernel tells twice of what it lets in.
  const size_t room = driver.properties().receive_buffer / 2;
  return {.own_qpn = qp_.number(),
          .first_psn = Psn{static_cast<uint32_t>(driver_.random().next())},
          .ird = device::kMaxReads,
          .ord = device::kMaxReads,
          .max_payload = static_cast<uint16_t>(datagram_room(qp_.context(), path)),
          .features = {.data_crc = config::options().datagram_crc,
                       .immediate = true,
                       .uc_read = true,
                       .ka_stats = true},
          .traffic_class = path.traffic_class,
          .hop_limit = path.hop_limit,
          .rate = path.rate,
          .receive_buffer = room,
          // The peer's socket is likely to be like this one's.
          .window = room,
          .close_by = own_host,
          .probes_path = !own_host};
}

void UcTransport::start_link(engine::Token& token, drive::DatagramDriver& driver) {
  peer_gone_ = false;
  forget_what_was_said();
  link_ = &drive::UcLink::start(token, driver, *this, *this);
  link_->count_in(qp_.counters());
}

void UcTransport::call(engine::Token& token, drive::DatagramDriver& driver, const wdp::Offer& offer,
                       const wdp::Path& path, Qpn destination, bool ib_style) {
  start_link(token, driver);
  driver.wdp_socket().connect(link_->connection(), offer, path, destination, ib_style, token.now());
  link_->settle(token);
}

bool UcTransport::accept(engine::Token& token, drive::DatagramDriver& driver,
                         const wdp::RequestKey& key, const wdp::Offer& offer) {
  start_link(token, driver);
  if (!driver.wdp_socket().accept(key, link_->connection(), offer, token.now())) {
    leave_link(token);
    return false;
  }
  link_->settle(token);
  return true;
}

wdp::UcConnection& UcTransport::expect_call(engine::Token& token) {
  leave_link(token);
  start_link(token, driver_);
  return link_->connection();
}

void UcTransport::adopt(engine::Token& token, const wdp::UcParameters& session,
                        const wdp::Endpoint& from) {
  start_link(token, driver_);
  driver_.wdp_socket().start_static(link_->connection(), session, from, token.now());
  link_->settle(token);
}

void UcTransport::forget_what_was_said() {
  ready_ = send_failed_ = false;
  end_.reset();
}

void UcTransport::leave_link(engine::Token& token) {
  forget_what_was_said();
  qp_.counters().peer.clear();
  if (link_ == nullptr) return;
  give_back_receive();
  std::exchange(link_, nullptr)->leave(token);
}

void UcTransport::give_back_receive() {
  if (auto* session = link_->connection().session()) session->give_back_receive();
}

void UcTransport::close(engine::Token& token) {
  link_->connection().close(token.now());
  link_->settle(token);
}

void UcTransport::drop(engine::Token& token, bool) {
  leave_link(token);
}

void UcTransport::stopped(engine::Token& token) {
  leave_link(token);
  peer_gone_ = false;
}

void UcTransport::changed(engine::Token& token, QpState from) {
  if (link_ == nullptr) return;
  if (auto* session = link_->connection().session()) {
    session->hold_requests(qp_.state() == QpState::sqd);
    if (from == QpState::sqe) session->resume_requests();
  }
  link_->settle(token);
}

bool UcTransport::draining() const {
  return link_ != nullptr && link_->connection().state() == UcConnection::State::open;
}

bool UcTransport::idle() const {
  const auto* session = link_ != nullptr ? link_->connection().session() : nullptr;
  return session == nullptr || session->requests_idle();
}

void UcTransport::posted(engine::Token& token) {
  if (peer_gone_) {
    return fail_posted(token);
  }
  if (link_ == nullptr || link_->connection().session() == nullptr) {
    qp_.await_connection(token);
  }
  if (link_ != nullptr) {
    drive::DatagramDriver& driver = link_->driver();
    if (driver.waits_for(*link_) && !qp_.receives().out()) driver.receives_posted(token, *link_);
    driver.posted(token, *link_);
  }
}

// Better than silent loss (spec/addressing 6.4).
void UcTransport::fail_posted(engine::Token& token) {
  const work::SendQueue& requests = qp_.send_queue();
  if (requests.head() < requests.tail()) qp_.fail_connection(token, Status::retry_exceeded);
}

// --- what the connection says; what others are to hear of it waits for the end of the visit

void UcTransport::stream_ready() {
  ready_ = true;
  const wdp::Endpoint& to = link_->connection().path().to;
  qp_.counters().peer.set({.address = to.address, .port = to.port});
  auto& session = *link_->connection().session();
  session.hold_requests(qp_.state() == QpState::sqd);
  if (qp_.state() == QpState::sqe) session.stop_requests();
}

// spec/wdp-uc 3.9: an event at the one whose Write or Send it was, and nothing ends.
void UcTransport::remote_error(wire::TermError error) {
  // A peer may say so as often as it likes, and a program need not look.
  if (!qp_.raise_event_once(EventType::qp_access_err)) return;
  WEFT_LOG(info, "queue pair 0x%06x: the peer refuses a message: %s", qp_.number().value(),
           error.to_string().c_str());
}

// Its status stands in the queue; the rest of the visit is done first.
void UcTransport::send_failed() {
  send_failed_ = true;
  link_->driver().schedule(*link_);
}

void UcTransport::receive_done(const work::Receive& r, Status status, const work::Arrival& a) {
  // The bytes of Writes are counted as they are placed.
  if (a.write_with_immediate) {
    count_received(qp_.counters().counters, stats::Kind::write, 0, status);
  } else {
    count_received(qp_.counters().counters, stats::Kind::send, a.length, status);
  }
  qp_.receive_done(r, status, a);
  if (qp_.receives().out()) link_->driver().wait_for_receives(*link_);
}

void UcTransport::visited(engine::Token& token, drive::UcLink& link) {
  if (&link != link_) return;
  if (std::exchange(ready_, false) && qp_.observer() != nullptr) {
    qp_.observer()->stream_ready(token);
    if (&link != link_) return;
  }
  if (std::exchange(send_failed_, false)) {
    // Later requests may be in the train, and their memory is the program's again.
    link_->driver().detach_memory(*link_);
    qp_.enter_send_error();
  }
  if (end_) {
    stream_over(token);
  } else if (link.connection().state() == UcConnection::State::failed) {
    call_failed(token);
  }
  qp_.visited(token);
}

void UcTransport::call_failed(engine::Token& token) {
  if (qp_.observer() != nullptr) {
    qp_.observer()->call_failed(token, *link_->connection().handshake());
  }
  leave_link(token);
}

void UcTransport::stream_over(engine::Token& token) {
  using Kind = work::StreamEnd::Kind;
  const work::StreamEnd end = *std::exchange(end_, {});
  qp_.counters().peer.clear();
  // InfiniBand knows no end of a connection: the queue pair stays as it is, until there is
  // something to be sent to nobody.
  if (!qp_.cm_managed() && (end.kind == Kind::peer_closed || end.broke())) {
    leave_link(token);
    peer_gone_ = true;
    return fail_posted(token);
  }
  qp_.enter_error(token);
  if (qp_.observer() != nullptr) qp_.observer()->stream_ended(token, end);
}

void UcTransport::link_lost(engine::Token& token, drive::UcLink& link) {
  if (&link != link_) return;
  give_back_receive();
  qp_.counters().peer.clear();
  link_ = nullptr;
  qp_.give_up_connection(token);
}

}  // namespace weft::verbs
