#include "engine/sockets.h"

#include <algorithm>
#include <array>

#include "engine/engine.h"
#include "engine/turn_length.h"

namespace weft::engine {

void Sockets::forget(EventHandler& handler) {
  set_.watch(handler, -1, false, false);
  memory_.remove(handler);
  if (busy_.handler() == &handler) busy_.clear();
  handler.ListHook<ReadyTag>::unlink();
}

// `others`: those have to be asked as well.
bool Sockets::poll_busy(Token& token, bool& others) {
  EventHandler& busy = *busy_.handler();
  const BusySocket::Poll poll = busy_.next(token.now(), set_.outside() == &busy);
  bool moved = false;
  if (poll.ask) {
    token.runtime().visit(token, busy, [&] { moved = busy.try_receive(token); });
    if (moved) busy_.moved(token.now());
  }
  others = poll.others;
  if (others && poll.paused && !moved) poll_all();
  return moved;
}

bool Sockets::poll(Token& token) {
  bool moved = memory_.any() && memory_.ask(token);
  // One whose output waits for room is asked through epoll: each recv(2) takes the socket's lock,
  // and whose it is decides which processor sends next (design/20).
  if (busy_.handler() != nullptr && !SocketSet::wants_write(*busy_.handler())) {
    bool others = true;
    moved |= poll_busy(token, others);
    if (!others) return moved;
  } else if (memory_.any() && memory_.sockets_can_wait(token.now())) {
    return moved;
  }
  busy_.others_asked();
  std::array<epoll_event, kMost + 1> room;
  const int n = set_.poll(std::span{room}.first(static_cast<size_t>(most_) + 1));
  const auto events = std::span{room}.first(static_cast<size_t>(std::max(n, 0)));
  if (!events.empty()) {
    EventHandler& first = SocketSet::handler_of(events.front());
    const bool alone = n == 1 && (events.front().events & EPOLLIN) != 0 && first.tries_receive() &&
                       set_.outside() == nullptr;
    if (alone) {
      busy_.told_of(first, token.now());
    } else {
      poll_all();
    }
  }
  if (!events.empty()) visit_ready(token, events);
  if (n > 1 || most_ < kMost) {
    // After one that has taken longer the next turn looks at fewer sockets.
    const bool long_turn = Engine::clock() - token.now() > kTurnMost;
    most_ = long_turn ? std::max(n / 2, 1) : std::min(2 * most_, kMost);
  }
  return moved || n > 0;
}

void Sockets::visit_ready(Token& token, std::span<const epoll_event> events) {
  // A handler that is removed in this loop is there until the turn is over, without its descriptor.
  for (const epoll_event& event : events) {
    EventHandler& s = SocketSet::handler_of(event);
    if (!SocketSet::watched(s)) continue;
    const bool broken = (event.events & (EPOLLERR | EPOLLHUP)) != 0;
    token.runtime().visit(token, s, [&] {
      if (broken) s.on_broken(token);
      if (!SocketSet::watched(s)) return;
      s.on_ready(token, broken || (event.events & EPOLLIN) != 0,
                 broken || (event.events & EPOLLOUT) != 0);
    });
  }
  // One more round for those that had more than their budget; what is left then is there at the
  // next turn.
  for (size_t left = events.size(); left > 0; --left) {
    EventHandler* s = ready_.pop_front();
    if (s == nullptr) break;
    token.runtime().visit(token, *s, [&] { s->on_ready(token, true, false); });
  }
}

}  // namespace weft::engine
