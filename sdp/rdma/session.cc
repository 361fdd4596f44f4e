#include "sdp/rdma/session.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

namespace weft::sdp {
namespace {

constexpr uint32_t kMessage = Session::kMessage;
constexpr uint32_t kReceives = QueuePair::kReceives;
// Data needs credits that control messages leave over (spec/sdp 4).
constexpr uint32_t kLeastReceives = 6;
// Numbers of receive buffers end here; then comes the one where Reads are staged.
constexpr uint32_t kStaged = kReceives;
static_assert(kStaged < ReceiveQueue::kMost);

uint16_t receives_for(uint32_t bytes) {
  const uint32_t most = bytes == 0 ? kReceives : bytes / kMessage;
  return static_cast<uint16_t>(std::clamp(most, kLeastReceives, kReceives));
}

}  // namespace

void Session::retire() {
  const std::lock_guard holding{lock};
  if (id() == nullptr) return;
  queue_pair_.set_down();
  waiters_.end();
  queue_pair_.destroy();
  completions_.leave(*this);
  // What another thread has put into the mailbox meanwhile needs the identifier.
  do {
    process();
  } while (connection_ && !mail_.empty());
  queue_pair_.destroy_id();
}

bool Session::create(rdma_cm_id* id, ibv_pd* pd, uint32_t receive_bytes) {
  queue_pair_.own(id);
  const uint32_t requests = QueuePair::kReceives + QueuePair::kSends;
  ibv_cq* queue = completions_.join(*this, id->verbs, requests);
  if (queue == nullptr || !queue_pair_.create(pd, queue)) return false;
  if (!receives_.allocate(pd, kReceives, kMessage) || !send_.allocate(pd, kMessage)) {
    return false;
  }
  receives_.limit_posted(receives_for(receive_bytes));
  return post_receives();
}

Hello Session::hello() const {
  return {.bufs = receives_.count_posted(), .desired_receive = kMessage, .receive_size = kMessage};
}

HelloAck Session::hello_ack() const {
  return {.bufs = receives_.count_posted(), .receive_size = kMessage};
}

void Session::open(uint16_t peer_bufs, uint32_t peer_receive_size, uint8_t peer_max_adverts) {
  const std::lock_guard holding{lock};
  const uint32_t largest = std::min(peer_receive_size, kMessage);
  send_.limit_payload(largest - Bsdh::kSize);
  connection_.emplace(Connection::Limits{.own_bufs = receives_.count_posted(),
                                         .peer_bufs = peer_bufs,
                                         .own_receive_size = kMessage,
                                         .peer_receive_size = largest,
                                         .peer_max_adverts = peer_max_adverts});
}

// Those that are free, as many as may be.
bool Session::post_receives() {
  while (const auto next = receives_.take()) {
    const QueuePair::Local buffer{receives_.at(*next), kMessage, receives_.key()};
    if (!queue_pair_.post_receive(buffer, static_cast<uint8_t>(*next))) return false;
    receives_.posted();
    if (connection_) connection_->posted();
  }
  return true;
}

void Session::release(uint32_t buffer) {
  receives_.give_back(buffer);
  (void)post_receives();
}

void Session::limit_buffers(uint32_t to_send, uint32_t received) {
  send_.limit_bytes(to_send == 0 ? UINT32_MAX : to_send);
  receives_.limit_posted(receives_for(received));
  (void)post_receives();
}

bool Session::process_mail() {
  process();
  return connection_.has_value();
}

void Session::before_unlock() {
  if (!std::exchange(news_, false) || !on_news) return;
  step([this] { on_news(); });
}

bool Session::put_off_mail() {
  try {
    on_more_mail();
  } catch (const std::bad_alloc&) {
    return false;
  }
  return true;
}

void Session::process() {
  if (!connection_) return;
  step([this] {
    take_mail();
    send_what_may_go();
    if (gone() && !settled_) settle_end();
  });
}

bool Session::poll() {
  const bool looked = completions_.take(Completions::How::to_the_end, this);
  process();
  return looked;
}

void Session::poll_behind_others() {
  (void)completions_.take(Completions::How::surely, this);
  process();
}

bool Session::rest() {
  if (!completions_.rest(this)) return false;
  process();
  return true;
}

void Session::take_mail() {
  if (mail_.empty()) return;
  news_ = true;
  // Not more than the box may have had at the beginning: whoever lets go of the lock looks again.
  for (uint32_t taken = 0; taken < Mailbox::kMost && !mail_.empty(); ++taken) {
    complete(mail_.take());
  }
  waiters_.wake();
}

// The queue pair is down. A peer that had sent DisConn has ended. For one that was killed it is as
// with TCP: an end if it had read everything and nothing is lost of what it sent, else a reset.
void Session::settle_end() {
  settled_ = true;
  news_ = true;
  waiters_.end();
  const bool all_read =
      !send_.waiting() && !connection_->advertising() && connection_->peer_has_read_all();
  const bool ended = all_read && !connection_->peer_may_have_more();
  if (!connection_->got_end() && !ended) fail(ECONNRESET);
  waiters_.wake();
}

void Session::sleep(std::unique_lock<Lock>& holding, std::chrono::microseconds most) {
  const NewsWaiters::Sleeper sleeper{waiters_};
  (void)rest();
  // Mail that comes from here on is processed when the lock is free, which counts.
  holding.unlock();
  sleeper.sleep(most);
  holding.lock();
}

void Session::complete(const Completed& completed) {
  using Work = QueuePair::Work;
  const auto work = static_cast<Work>(completed.work);
  queue_pair_.completed(work, completed.ok);
  if (!completed.ok) {
    // What has come in order before it is good.
    if (work == Work::read) reads_.give_up();
    return;
  }
  switch (work) {
    case Work::receive:
      return on_receive(completed.number, completed.bytes);
    case Work::data:
      return send_.completed();
    case Work::read:
      return on_read();
    case Work::write:
    case Work::control:
    case Work::broken:
      return;
  }
}

void Session::on_receive(uint8_t buffer, uint32_t bytes) {
  receives_.used();
  if (error_ != 0) return;
  const bool advertised = connection_->sink().advertised();
  const auto in = connection_->on_message({receives_.at(buffer), bytes});
  Traffic::add(shown_.traffic().messages_received, 1);
  if (!in.ok()) {
    if (on_violation) on_violation(in.error());
    return abort();
  }
  if (in->aborted) {
    // Where both have ended it is over, and a peer that has left data unread ends nothing.
    const bool over = connection_->got_end() && connection_->sent_end();
    return over ? release(buffer) : fail(connection_->got_end() ? EPIPE : ECONNRESET);
  }
  const bool advertises = connection_->sink().advertised() && !advertised;
  if (refuses_data_ && (advertises || !in->payload.empty())) return abort();
  const Bytes payload = in->payload;
  if (in->urgent) {
    // With the newer one the older goes, where it would have been left out.
    if (urgent_.is_left_out()) take(1);
    urgent_.came(received_.bytes() + payload.size() - 1, payload.back());
  }
  if (!payload.empty()) {
    Traffic::add(shown_.traffic().bytes_received, payload.size());
    received_.push(payload, buffer);
  } else {
    release(buffer);
  }
}

void Session::take(size_t bytes) {
  while (bytes > 0) {
    const size_t n = std::min(bytes, received_.front().size());
    bytes -= n;
    urgent_.taken(n);
    const auto buffer = received_.take(n);
    if (!buffer) continue;
    if (*buffer == kStaged) {
      reads_.taken();
    } else {
      release(*buffer);
    }
  }
}

void Session::send_what_may_go() {
  if (broken()) return;
  const auto send_controls = [this] {
    while (queue_pair_.has_place()) {
      const auto message = connection_->next_control();
      if (!message) return;
      if (!post_control(*message)) return;
    }
  };
  if (stages_by_itself_) (void)stage();
  send_controls();
  while (send_.waiting() && connection_->data_may_go() && queue_pair_.has_place()) post_data();
  if (ending_ && !send_.waiting()) {
    connection_->end_sending();
    connection_->everything_is_sent();
    send_controls();
  }
}

void Session::count_message() {
  Traffic::add(shown_.traffic().messages_sent, 1);
  shown_.traffic().credits.store(connection_->credits(), std::memory_order_relaxed);
}

bool Session::post_control(const Connection::Message& message) {
  if (!queue_pair_.send_inline(message.bytes.data(), message.length)) return false;
  count_message();
  return true;
}

void Session::post_data() {
  const SendBuffers::Message message = send_.next();
  const uint8_t flags = message.urgent ? Bsdh::kOobPresent | Bsdh::kOobPending : 0;
  connection_->send_data(message.header, message.payload, flags);
  if (!queue_pair_.send({message.header, Bsdh::kSize + message.payload, send_.key()})) return;
  count_message();
  Traffic::add(shown_.traffic().bytes_sent, message.payload);
  send_.posted();
}

bool Session::may_advertise() const {
  return writable() && !send_.waiting() && queue_pair_.has_place() && connection_->may_advertise();
}

bool Session::advertise(const std::byte* from, uint32_t bytes, uint32_t rkey) {
  const SrcAvail buffer{.length = bytes, .stag = rkey, .to = reinterpret_cast<uintptr_t>(from)};
  return post_control(connection_->send_src_avail(buffer, *from));
}

void Session::cancel_advertising() {
  connection_->cancel_src_avail();
  send_what_may_go();
}

std::optional<uint32_t> Session::take_outcome() {
  const auto outcome = connection_->take_outcome();
  if (!outcome) return std::nullopt;
  Traffic::add(shown_.traffic().bytes_sent, outcome->bytes);
  return outcome->bytes;
}

Verbs<ibv_mr> Session::lend(const std::byte* memory, size_t bytes, int access) const {
  ibv_pd* const pd = queue_pair_.pd();
  if (pd == nullptr) return nullptr;
  return Verbs<ibv_mr>{ibv_reg_mr(pd, const_cast<std::byte*>(memory), bytes, access)};
}

uint32_t Session::offered() const {
  return broken() || !reads_.may_begin() ? 0 : connection_->sink().available();
}

// What came before it is read first, the payload of its message too.
uint32_t Session::read(const SinkReads::Target& target) {
  if (offered() == 0 || !received_.empty() || !queue_pair_.has_place()) return 0;
  if (target.most == 0) {
    // There is no memory to stage it.
    if (!reads_.has_staging()) connection_->refuse_src_avail();
    return 0;
  }
  const Sink::Piece piece = connection_->start_read(target.most);
  const QueuePair::Local to{target.to, piece.length, target.key};
  if (!queue_pair_.read(to, {piece.to, piece.stag})) return 0;
  reads_.begin(target, piece.length);
  return piece.length;
}

void Session::on_read() {
  const uint32_t bytes = reads_.bytes();
  Traffic::add(shown_.traffic().bytes_received, bytes);
  Traffic::add(shown_.traffic().bytes_read, bytes);
  const Bytes staged = reads_.end();
  if (!staged.empty()) received_.push(staged, kStaged);
  connection_->finish_read(bytes);
}

bool Session::ended() const {
  const bool ended = connection_->got_end() && !connection_->sink().advertised();
  return ended || broken();
}

bool Session::busy() const {
  if (broken()) return false;
  return send_.waiting() || reads_.under_way() || queue_pair_.writes() > 0 ||
         connection_->advertising() || (ending_ && !connection_->sent_end());
}

bool Session::has_sent_all() const {
  if (gone() || !connection_) return true;
  // What says so to the peer is on its way.
  if (error_ != 0) return queue_pair_.all_completed();
  return ending_ == connection_->sent_end() && send_.empty() && queue_pair_.all_completed();
}

bool Session::has_said_all() const {
  return has_sent_all() && (broken() || connection_->sent_end());
}

bool Session::finished() const {
  return has_said_all() && (broken() || connection_->got_end());
}

int Session::take_read_error() {
  return connection_->got_end() ? 0 : take_error();
}

void Session::fail(int error) {
  if (error_ == 0) error_ = untold_ = error;
}

void Session::abort() {
  if (connection_ && !broken() && queue_pair_.has_place()) {
    connection_->abort();
    if (const auto message = connection_->next_control()) (void)post_control(*message);
  }
  fail(ECONNRESET);
}

// Whoever could not be told of it is told when the lock is let go of the next time (catch_up()).
void Session::give_up() {
  lacked_memory_ = true;
  news_ = true;
  abort();
}

void Session::on_disconnected() {
  // What has come before it is good.
  poll_behind_others();
  queue_pair_.set_down();
  news_ = true;
  process();
}

}  // namespace weft::sdp
