#include "cm/acceptor.h"

#include <algorithm>
#include <array>
#include <utility>

#include "cm/crowd.h"
#include "port/calls.h"

namespace weft::cm {
namespace {

using namespace std::chrono_literals;
constexpr int kAcceptsPerTurn = 64;
constexpr Duration kRest = 100ms;
constexpr Duration kSilence = 1s;

// What it has said is about to be looked at.
bool has_spoken(const PassiveStart& a) {
  return port::calls::readable(a.tcp().fd());
}

}  // namespace

using engine::Token;

Acceptor& Acceptor::start(Token& token, PassiveStartHandler& handler,
                          const port::TcpListener& listener) {
  auto owned = std::unique_ptr<Acceptor>{new Acceptor(handler, listener)};
  Acceptor& a = *owned;
  token.runtime().add(token, std::move(owned), listener.fd(), true, false);
  return a;
}

void Acceptor::stop(Token& token) {
  for (PassiveStart* a : half_open_) a->drop(token);
  half_open_.clear();
  accepted_.reset();
  token.runtime().remove(token, *this);
}

void Acceptor::on_ready(Token& token, bool, bool) {
  bool made_room = false;
  for (int i = 0; i < kAcceptsPerTurn; ++i) {
    // The rest waits in the kernel's queue until one of these has spoken or run out of time.
    listen_or_not(token);
    if (paused_) return;
    stats::EngineCounters& counters = token.runtime().counters();
    if (half_open_.size() >= kMostHalfOpen) {
      // For one in each turn: whether more are waiting is known then.
      if (std::exchange(made_room, true)) return;
      if (!make_room(token)) {
        stats::count(counters.accept_paused, stats::AcceptPause::half_open);
        return listen_or_not(token);
      }
    }
    if (!accepted_) {
      accepted_ = listener_.accept();
      if (accepted_) counters.connections_accepted.add();
    }
    if (!accepted_) {
      if (i == 0) {
        // Readable, yet nothing to be had: no descriptor left.
        rest(token, stats::AcceptPause::no_descriptor);
      }
      return;
    }
    half_open_.push_back(&PassiveStart::start(token, *this, std::move(*accepted_)));
    accepted_.reset();
  }
}

// Somebody waits. A connection that has been silent for a while makes room, of the host that has
// the most.
bool Acceptor::make_room(Token& token) {
  std::array<Gid, kMostHalfOpen> hosts;
  std::transform(half_open_.begin(), half_open_.end(), hosts.begin(),
                 [](const PassiveStart* a) { return a->tcp().peer().gid(); });
  PassiveStart& a = *half_open_[oldest_of_the_most({hosts.data(), half_open_.size()})];
  full_until_ = a.begun() + kSilence;
  if (token.now() >= full_until_ && has_spoken(a)) full_until_ = token.now() + kRest;
  if (token.now() < full_until_) {
    token.runtime().set_deadline(token, *this, full_until_);
    return false;
  }
  a.evict(token);
  return true;
}

// Do not spin on it.
void Acceptor::rest(Token& token, stats::AcceptPause why) {
  stats::count(token.runtime().counters().accept_paused, why);
  token.runtime().want_read(token, *this, false);
  token.runtime().set_deadline(token, *this, token.now() + kRest);
}

// The connection that was about to be taken waits: one that closes without a Reply would be
// connected again without weft's extension (spec/mpa 2.3.4).
void Acceptor::on_no_memory(Token& token) {
  rest(token, stats::AcceptPause::no_memory);
}

void Acceptor::on_deadline(Token& token) {
  listen_or_not(token);
  if (accepted_) on_ready(token, true, false);
}

void Acceptor::listen_or_not(Token& token) {
  const bool full = half_open_.size() >= kMostHalfOpen && token.now() < full_until_;
  token.runtime().want_read(token, *this, !paused_ && !full);
}

void Acceptor::pause(Token& token, bool on) {
  paused_ = on;
  listen_or_not(token);
  if (!paused_ && accepted_) token.runtime().set_deadline(token, *this, token.now());
}

void Acceptor::left(Token& token, PassiveStart& start) {
  std::erase(half_open_, &start);
  listen_or_not(token);
  if (!paused_ && accepted_) token.runtime().set_deadline(token, *this, token.now());
}

void Acceptor::request_came(Token& token, PassiveStart& start,
                            const mpa::Responder::Request& request) {
  left(token, start);
  start.hand_over(handler_);
  handler_.request_came(token, start, request);
}

void Acceptor::start_gone(Token& token, PassiveStart& start) {
  left(token, start);
}

}  // namespace weft::cm
