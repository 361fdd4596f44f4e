#include "cm/acceptor.h"

#include <algorithm>

namespace weft::cm {
namespace {

using namespace std::chrono_literals;
constexpr int kAcceptsPerTurn = 64;
constexpr Duration kRest = 100ms;

}  // namespace

using engine::Token;

Acceptor& Acceptor::start(Token& token, AnswerHandler& handler, const port::TcpListener& listener) {
  auto owned = std::unique_ptr<Acceptor>{new Acceptor(handler, listener)};
  Acceptor& a = *owned;
  token.engine().add(token, std::move(owned), listener.fd(), true, false);
  return a;
}

void Acceptor::stop(Token& token) {
  for (Answer* a : half_open_) a->drop(token);
  half_open_.clear();
  token.engine().remove(token, *this);
}

void Acceptor::on_ready(Token& token, bool, bool) {
  for (int i = 0; i < kAcceptsPerTurn; ++i) {
    // The rest waits in the kernel's queue until one of these has spoken or run out of time.
    listen_or_not(token);
    if (paused_) return;
    stats::EngineCounters& counters = token.engine().counters();
    if (half_open_.size() >= kMostHalfOpen) {
      stats::count(counters.accept_paused, stats::AcceptPause::half_open);
      return;
    }
    auto tcp = listener_.accept();
    if (!tcp) {
      if (i == 0) {
        // Readable, yet nothing to be had: no descriptor left.
        rest(token, stats::AcceptPause::no_descriptor);
      }
      return;
    }
    counters.connections_accepted.add();
    half_open_.push_back(&Answer::start(token, *this, std::move(*tcp)));
  }
}

// Do not spin on it.
void Acceptor::rest(Token& token, stats::AcceptPause why) {
  stats::count(token.engine().counters().accept_paused, why);
  token.engine().want_read(token, *this, false);
  token.engine().set_deadline(token, *this, token.now() + kRest);
}

// The connection that was about to be taken is closed.
void Acceptor::on_no_memory(Token& token) {
  rest(token, stats::AcceptPause::no_memory);
}

void Acceptor::on_deadline(Token& token) {
  listen_or_not(token);
}

void Acceptor::listen_or_not(Token& token) {
  token.engine().want_read(token, *this, !paused_ && half_open_.size() < kMostHalfOpen);
}

void Acceptor::pause(Token& token, bool on) {
  paused_ = on;
  listen_or_not(token);
}

void Acceptor::left(Token& token, Answer& answer) {
  std::erase(half_open_, &answer);
  listen_or_not(token);
}

void Acceptor::request_came(Token& token, Answer& answer, const mpa::Responder::Request& request) {
  left(token, answer);
  answer.hand_over(handler_);
  handler_.request_came(token, answer, request);
}

void Acceptor::answer_gone(Token& token, Answer& answer) {
  left(token, answer);
}

}  // namespace weft::cm
