#include "drive/rd_link.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "config/options.h"
#include "wdp/cubic.h"
#include "wdp/fixed_rate.h"
#include "wdp/port_question.h"

namespace weft::drive {
namespace {

// When a process that ends looks first whether the peer has all, and whether it heard the goodbye.
constexpr Duration kFirstLook = std::chrono::milliseconds{2};
constexpr Duration kFirstOfGoodbye = std::chrono::microseconds{100};
// For the first answer to a call, and between the looks for its port that follow.
constexpr Duration kAnswersWithin = std::chrono::milliseconds{2};
constexpr Duration kPortLooks = std::chrono::milliseconds{100};
// Of silence, before TCP is asked as well. Networks that refuse TCP are no peers that are gone: one
// that is only slow has answered by then.
constexpr Duration kAsksTcpAfter = std::chrono::seconds{1};
// For the turn that looks.
constexpr Duration kLooks = std::chrono::microseconds{100};

std::unique_ptr<wdp::Congestion> congestion() {
  const double gbps = config::options().fixed_rate;
  if (gbps > 0) return std::make_unique<wdp::FixedRate>(gbps);
  return std::make_unique<wdp::Cubic>();
}

}  // namespace

RdLink::RdLink(Token& token, DatagramDriver& driver)
    : DatagramSender(config::options().ud_big),
      driver_(driver),
      channel_(driver.wdp_socket().channels(), *this, driver.random(),
               driver.wdp_socket().channels().setup()->window, config::options().ecn, congestion()),
      engine_(token.runtime().counter_block()) {
  set_source(&channel_);
}

RdLink::~RdLink() = default;

RdLink& RdLink::start(Token& token, DatagramDriver& driver) {
  auto owned = std::unique_ptr<RdLink>{new RdLink(token, driver)};
  RdLink& link = *owned;
  token.runtime().add(token, std::move(owned), -1, false, false);
  driver.enter();
  return link;
}

// A peer that is gone without a word, as one that was killed, would keep its requests and
// connections for 15 s. Whether it has its port yet is asked again with each question that it
// leaves unanswered: it may have been slow at first, and killed then. Linux answers a host by ICMP
// six times at once and then once a second, so where it has other channels to that peer this one
// may never hear of it: every second question is one of TCP then.
void RdLink::look_for_peer(Token& token) {
  if (channel_.calls_for_connection()) return look_for_called_port(token);
  const uint32_t silence = channel_.silence();
  if (silence == 0) silent_since_ = Time::never();
  if (silence == 0 || silence > checked_) stop_check(token);
  if (silence <= std::exchange(checked_, silence)) return;
  if (silent_since_.is_never()) silent_since_ = token.now();
  const bool long_silent = token.now() - silent_since_ >= kAsksTcpAfter;
  if (long_silent && !std::exchange(asked_tcp_, true)) {
    check_ = &PortCheck::start_by_tcp(token, driver_, *this, channel_.path());
  } else {
    asked_tcp_ = false;
    check_ =
        &PortCheck::start(token, driver_, *this, channel_.path(), channel_.question(), token.now());
  }
}

// A connection can go by TCP, or has been told of by a process that is gone. Messages without one
// wait for a process that may be about to begin.
void RdLink::look_for_called_port(Token& token) {
  if (check_ != nullptr) return;
  const Duration pause = std::exchange(asked_, true) ? kPortLooks : kAnswersWithin;
  check_ = &PortCheck::start(token, driver_, *this, channel_.path(),
                             wdp::port_question(driver_.random()), token.now() + pause);
}

void RdLink::stop_check(Token& token) {
  if (check_ != nullptr) std::exchange(check_, nullptr)->stop(token);
}

void RdLink::port_checked(Token& token, bool closed) {
  check_ = nullptr;
  if (closed && (channel_.silence() > 0 || channel_.calls_for_connection())) channel_.abort();
  driver_.schedule(*this);
  driver_.settle(token);
}

void RdLink::on_deadline(Token& token) {
  if (ended_) return;
  token.runtime().guard(
      token, [&] { channel_.tick(token.now()); }, [&] { on_no_memory(token); });
  driver_.schedule(*this);
  driver_.settle(token);
}

void RdLink::on_gathered(Token& token) {
  if (ended_) return;
  if (channel_.out().answers_wait()) {
    channel_.out().say_answers();
    driver_.settle(token);
  }
  if (!ended_) keep_books(token);
}

// What is under way does not end with the process, nor does a goodbye, which nobody could say
// again. When the peer's word of it comes is not known, and an end that was put off stays so. So
// each look is after as long as it has waited, and the end is late by that at most.
Time RdLink::next_look(Token& token) {
  const Time now = token.now();
  const bool closing = channel_.state() == wdp::RdChannel::State::closing;
  if (!closing && channel_.sender().idle() && !channel_.out().answers_wait()) {
    waits_since_ = Time::never();
    return Time::never();
  }
  if (waits_since_.is_never() || std::exchange(says_goodbye_, closing) != closing) {
    waits_since_ = now;
  } else if (!closing) {
    waits_since_ = std::max(waits_since_, channel_.out().active_at());
  }
  const Duration first = closing ? kFirstOfGoodbye : kFirstLook;
  return now + std::clamp(now - waits_since_, first, wdp::kLastMessages);
}

void RdLink::settled(Token& token) {
  if (ended_) return;
  const bool answers = channel_.out().answers_wait();
  const bool in_line = ListHook<engine::GatheringTag>::linked();
  const bool polls = (in_line && !answers) || token.runtime().gather(token, *this);
  // Behind a program's answer what became of its peer's message costs nothing. One that polls
  // answers before its next poll, or not at all.
  if (answers && !polls) channel_.out().say_answers();
  if (token.now() >= channel_.rests_at() && driver_.rest(token, channel_)) return end(token);
  if (channel_.is_gone()) {
    keep_books(token);
    end(token);
    driver_.leave(token, channel_);
    return;
  }
  look_for_peer(token);
  // Nor has it to wait for this.
  if (!polls || channel_.handshake() != nullptr) keep_books(token);
}

// What others see of the channel, and when it is to be looked at again.
void RdLink::keep_books(Token& token) {
  tally_.publish(channel_, engine_.counters);
  if (const auto* h = channel_.handshake()) handshake_.publish(*h, engine_.counters);
  if (channel_.is_gone()) return;
  const Time look = next_look(token);
  token.runtime().set_deadline(token, *this,
                               std::min({channel_.deadline(), channel_.rests_at(), look}));
  if (!look.is_never()) token.runtime().closes_at(token, look + kLooks);
}

void RdLink::end(Token& token) {
  ended_ = true;
  stop_check(token);
  set_source(nullptr);
  driver_.remove(token, *this);
  token.runtime().remove(token, *this);
}

}  // namespace weft::drive
