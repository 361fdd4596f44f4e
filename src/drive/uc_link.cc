#include "drive/uc_link.h"

#include <utility>

#include "drive/silence.h"
#include "wdp/port_question.h"

namespace weft::drive {

UcLink& UcLink::start(Token& token, DatagramDriver& driver, UcLinkOwner& owner,
                      wdp::UcConsumer& consumer) {
  auto owned = std::unique_ptr<UcLink>{new UcLink(token, driver, owner, consumer)};
  UcLink& link = *owned;
  driver.enter();
  token.runtime().add(token, std::move(owned), -1, false, false);
  return link;
}

UcLink::~UcLink() = default;

void UcLink::settle(Token& token) {
  if (ended_) return;
  driver_.schedule(*this);
  driver_.settle(token);
}

// What is left of the connection is between the driver and the peer.
void UcLink::leave(Token& token) {
  if (ended_) return;
  owner_ = nullptr;
  publish_counts();
  count_in(engine_.gone);  // the block of the queue pair goes with it
  driver_.detach_memory(*this);
  token.runtime().guard(
      token, [&] { connection_.abort(0, token.now()); }, [&] { end(token); });
  // One that nobody ever called has no peer to be told.
  if (connection_.handshake() == nullptr && connection_.session() == nullptr) {
    end(token);
  } else {
    settle(token);
  }
}

void UcLink::on_deadline(Token& token) {
  if (ended_) return;
  token.runtime().guard(
      token, [&] { connection_.tick(token.now()); }, [&] { on_no_memory(token); });
  look_for_answers(token);
  look_for_port(token);
  settle(token);
}

void UcLink::look_for_answers(Token& token) {
  if (ended_ || owner_ == nullptr || silence_told_) return;
  if (token.now() < connection_.unanswered_since() + kSilence) return;
  silence_told_ = true;
  const wdp::Endpoint& to = connection_.path().to;
  report_silence(token, stats::Silence::datagrams, port::Address::from_gid(to.address, to.port));
}

void UcLink::look_for_port(Token& token) {
  if (ended_ || owner_ == nullptr || check_ != nullptr) return;
  if (token.now() < connection_.port_in_doubt_since()) return;
  check_ = &PortCheck::start(token, driver_, *this, connection_.path(),
                             wdp::port_question(driver_.random()), token.now());
}

void UcLink::port_checked(Token& token, bool closed) {
  check_ = nullptr;
  if (closed) connection_.port_closed();
  settle(token);
}

void UcLink::stop_check(Token& token) {
  if (check_ != nullptr) std::exchange(check_, nullptr)->stop(token);
}

void UcLink::on_idle(Token&) {
  if (auto* session = connection_.session()) session->trim();
}

void UcLink::settled(Token& token) {
  if (ended_) return;
  publish_counts();
  if (connection_.unanswered_since().is_never()) stop_check(token);
  if (owner_ != nullptr) owner_->visited(token, *this);
  if (ended_) return;
  // Its requests may have been flushed, and their memory is the program's again.
  if (auto* session = connection_.session(); session != nullptr && session->ended()) {
    driver_.detach_memory(*this);
  }
  if (owner_ == nullptr && connection_.gone()) return end(token);
  token.runtime().set_deadline(token, *this, connection_.deadline());
}

void UcLink::publish_counts() {
  drops_.publish(connection_.drops(), engine_.counters);
  if (const auto* h = connection_.handshake()) handshake_.publish(*h, engine_.counters);
  if (const auto* session = connection_.session()) {
    tally_.publish(*session, counters_->counters, engine_.counters);
  }
}

void UcLink::end(Token& token) {
  if (std::exchange(ended_, true)) return;
  publish_counts();
  stop_check(token);
  // It is there until the turn is over, and other sessions may call it when their window opens.
  if (auto* session = connection_.session()) session->detach();
  driver_.remove(token, *this);
  driver_.leave(token, connection_);  // which may be the end of the driver
  token.runtime().remove(token, *this);
}

// Nothing is said for it any more; the peer finds out by its keepalives.
void UcLink::on_no_memory(Token& token) {
  if (ended_) return;
  UcLinkOwner* owner = std::exchange(owner_, nullptr);
  end(token);
  if (owner != nullptr) owner->link_lost(token, *this);
}

}  // namespace weft::drive
