#include "sdp/rdma/session.h"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace weft::sdp {

void Session::retire() {
  const std::lock_guard holding{lock};
  if (id() == nullptr) return;
  QueuePair& queue_pair = link_.queue_pair();
  queue_pair.set_down();
  waiters_.end();
  queue_pair.destroy();
  completions_.leave(*this);
  // What another thread has put into the mailbox meanwhile needs the identifier.
  do {
    process();
  } while (link_.is_open() && !mail_.empty());
  queue_pair.destroy_id();
}

bool Session::create(rdma_cm_id* id, ibv_pd* pd, uint32_t receive_bytes) {
  QueuePair& queue_pair = link_.queue_pair();
  queue_pair.own(id);
  const uint32_t requests = QueuePair::kReceives + QueuePair::kSends;
  ibv_cq* queue = completions_.join(*this, id->verbs, requests);
  if (queue == nullptr || !queue_pair.create(pd, queue)) return false;
  return out_.allocate(pd) && in_.allocate(pd, receive_bytes);
}

Hello Session::hello() const {
  return {.bufs = in_.count_posted(),
          .desired_receive = Link::kMessage,
          .receive_size = Link::kMessage};
}

HelloAck Session::hello_ack() const {
  return {.bufs = in_.count_posted(), .receive_size = Link::kMessage};
}

void Session::open(uint16_t peer_bufs, uint32_t peer_receive_size, uint8_t peer_max_adverts) {
  const std::lock_guard holding{lock};
  const uint32_t largest = std::min(peer_receive_size, Link::kMessage);
  out_.limit_message(largest);
  link_.open({.own_bufs = in_.count_posted(),
              .peer_bufs = peer_bufs,
              .own_receive_size = Link::kMessage,
              .peer_receive_size = largest,
              .peer_max_adverts = peer_max_adverts});
}

void Session::limit_buffers(uint32_t to_send, uint32_t received) {
  out_.limit_bytes(to_send);
  in_.limit_bytes(received);
}

bool Session::process_mail() {
  process();
  return link_.is_open();
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
  if (!link_.is_open()) return;
  step([this] {
    take_mail();
    in_.stage_by_itself();
    out_.send();
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
  const Connection& connection = link_.connection();
  const bool all_read =
      !out_.waiting() && !connection.advertising() && connection.peer_has_read_all();
  const bool ended = all_read && !connection.peer_may_have_more();
  if (!connection.got_end() && !ended) link_.fail(ECONNRESET);
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
  link_.queue_pair().completed(work, completed.ok);
  if (!completed.ok) {
    // What has come in order before it is good.
    if (work == Work::read) in_.give_up_read();
    return;
  }
  switch (work) {
    case Work::receive:
      return on_receive(completed.number, completed.bytes);
    case Work::data:
      return out_.completed();
    case Work::read:
      return in_.on_read();
    case Work::write:
    case Work::control:
    case Work::broken:
      return;
  }
}

void Session::on_receive(uint8_t buffer, uint32_t bytes) {
  const auto violation = in_.on_message(buffer, bytes);
  if (!violation) return;
  if (on_violation) on_violation(*violation);
  abort();
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
  link_.queue_pair().set_down();
  news_ = true;
  process();
}

}  // namespace weft::sdp
