#include "sim/host/runtime.h"

#include <algorithm>
#include <utility>

#include "base/draw.h"

namespace weft::sim {

using engine::EventHandler;
using engine::Token;

namespace {

// Until the same socket is looked at again: turns take time.
constexpr Duration kTurn{100};

}  // namespace

Runtime::Runtime(Scheduler& scheduler, const Options& options)
    : engine::Runtime(nullptr, std::make_unique<SeededRandom>(options.seed)),
      scheduler_(scheduler),
      options_(options),
      choices_(options.seed * 0x9e3779b97f4a7c15U + 1),
      alarm_(scheduler, [this] { run([](Token&) {}); }),
      defer_alarm_(scheduler, [this] { run([this](Token& token) { flush_deferred(token); }); }) {}

Runtime::~Runtime() {
  Token token = token_of(*this, scheduler_.now());
  while (!handlers_.empty()) remove(token, *handlers_.back());
}

// --- sockets

int Runtime::open(const Socket& socket) {
  sockets_[next_fd_] = &socket;
  return next_fd_++;
}

void Runtime::close(int fd) {
  sockets_.erase(fd);
}

void Runtime::changed() {
  if (running_) return;  // the turn looks anyway
  run([](Token&) {});
}

const Socket* Runtime::socket_of(const EventHandler& handler) const {
  const auto it = sockets_.find(fd_of(handler));
  return it != sockets_.end() ? it->second : nullptr;
}

// --- handlers

void Runtime::add(Token& token, std::unique_ptr<EventHandler> handler, int fd, bool read,
                  bool write) {
  handlers_.push_back(handler.get());
  owned_.push_back(std::move(handler));
  rewatch(token, *handlers_.back(), fd, read, write);
}

void Runtime::rewatch(Token&, EventHandler& handler, int fd, bool read, bool write) {
  set_watched(handler, fd, read, write);
}

void Runtime::forget(Token& token, EventHandler& handler) {
  rewatch(token, handler, -1, false, false);
  deadlines_.set(handler, Time::never());
  handler.ListHook<engine::ReadyTag>::unlink();
  handler.ListHook<engine::GatheringTag>::unlink();
  handler.ListHook<engine::DeferredTag>::unlink();
  std::erase(handlers_, &handler);
}

void Runtime::remove(Token& token, EventHandler& handler) {
  forget(token, handler);
}

void Runtime::update_interest(Token&, EventHandler& handler, bool read, bool write) {
  if (fd_of(handler) >= 0) set_watched(handler, fd_of(handler), read, write);
}

void Runtime::update_deadline(Token&, EventHandler& handler, Time when) {
  deadlines_.set(handler, when);
}

void Runtime::again(Token&, EventHandler& handler) {
  again_.push_back(handler);
}

void Runtime::more_to_send(Token& token, EventHandler& handler) {
  want_write(token, handler, true);
}

bool Runtime::gather(Token&, EventHandler& handler) {
  if (!draw_chance(choices_, options_.gather)) return false;
  gathered_.push_back(handler);
  return true;
}

void Runtime::defer(Token&, EventHandler& handler) {
  deferred_.push_back(handler);
  if (!defer_alarm_.is_set()) defer_alarm_.set(scheduler_.now() + options_.defer);
}

void Runtime::flush_deferred(Token& token) {
  defer_alarm_.cancel();
  while (EventHandler* h = deferred_.pop_front()) visit(token, *h, [&] { h->on_idle(token); });
}

void Runtime::retire_memory() {
  run([this](Token& token) {
    const auto all = handlers_;
    for (EventHandler* h : all) visit(token, *h, [&] { h->on_memory_retired(token); });
  });
}

// --- a turn

// True when it was called.
bool Runtime::visit_ready(Token& token, EventHandler& handler) {
  const Socket* const s = socket_of(handler);
  if (s == nullptr) return false;
  const bool broken = s->broken();
  const bool readable = broken || (wants_read(handler) && s->readable());
  const bool writable = broken || (wants_write(handler) && s->writable());
  if (!readable && !writable) return false;
  visit(token, handler, [&] {
    if (broken) handler.on_broken(token);
    if (fd_of(handler) < 0) return;
    if (!broken && readable && !writable && handler.tries_receive() &&
        draw_chance(choices_, options_.unasked)) {
      (void)handler.try_receive(token);
      return;
    }
    handler.on_ready(token, readable, writable);
  });
  return true;
}

// As Engine::turn(): what was gathered, deadlines, sockets, those that had more than their budget.
void Runtime::turn(Token& token) {
  while (EventHandler* h = gathered_.pop_front()) visit(token, *h, [&] { h->on_gathered(token); });
  while (EventHandler* h = deadlines_.expire(token.now())) {
    visit(token, *h, [&] { h->on_deadline(token); });
  }
  bool more = false;
  const auto all = handlers_;  // handlers come and go meanwhile, and none is deleted
  for (EventHandler* h : all) more |= visit_ready(token, *h);
  while (EventHandler* h = again_.pop_front()) {
    more = true;
    visit(token, *h, [&] { h->on_ready(token, true, false); });
  }
  more |= !gathered_.empty();
  alarm_.set(std::min(deadlines_.earliest(), more ? token.now() + kTurn : Time::never()));
}

}  // namespace weft::sim
