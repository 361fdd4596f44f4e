#include "sdp/sockets/relay.h"

#include <linux/sockios.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "sdp/sockets/mirror.h"
#include "sdp/sockets/real.h"

namespace weft::sdp {

Relay::Relay(Loop& loop, Fabric& fabric, std::shared_ptr<Session> session, File inner, int shadow,
             Loop::Ready ended)
    : loop_(loop),
      fabric_(fabric),
      session_(std::move(session)),
      inner_(std::move(inner)),
      shadow_(shadow),
      ended_(std::move(ended)) {}

Relay::~Relay() {
  if (watched_) loop_.forget(inner_.get());
  // Behind its end the session is no more its own.
  if (over_) return;
  const std::lock_guard lock{session_->lock};
  session_->on_news = nullptr;
}

void Relay::start() {
  fabric_.keep_alive(*session_, keepalive_of(shadow_));
  // An urgent byte stays in its place in front of the mark.
  const int on = 1;
  (void)real().setsockopt(inner_.get(), SOL_SOCKET, SO_OOBINLINE, &on, sizeof on);
  events_ = EPOLLIN;
  const auto on_inner = [this](uint32_t events) {
    if ((events & (EPOLLHUP | EPOLLERR)) != 0) {
      // The kernel tells of it again and again. What the program wrote before is still to be had.
      closed_ = true;
      loop_.forget(inner_.get());
      watched_ = false;
    }
    turn();
  };
  {
    const std::lock_guard lock{session_->lock};
    session_->step([&] { watched_ = loop_.watch(inner_.get(), events_, on_inner); });
    session_->in().set_stages_by_itself(true);
    session_->want(true);
    if (watched_) session_->on_news = [this] { turn_soon(); };
  }
  // Nobody would tell of the program's end.
  if (!watched_) return end();
  turn();
}

bool Relay::program_has_closed() const {
  pollfd end{inner_.get(), 0, 0};
  const timespec no_time{};
  return real().ppoll(&end, 1, &no_time, nullptr) == 1 && (end.revents & POLLHUP) != 0;
}

// Any thread, with the session's lock. The relay ends behind what was posted before.
void Relay::turn_soon() {
  if (turns_soon_) return;
  loop_.post([this] { turn(); });
  turns_soon_ = true;
}

void Relay::turn() {
  if (over_) return;
  {
    const std::lock_guard lock{session_->lock};
    turns_soon_ = false;
    session_->poll();
    session_->told();
    from_program();
    to_program();
    refuse_program();
    session_->poll();
    (void)session_->rest();
  }
  const bool nothing_left = closed_ && (!program_sends_ || !session_->out().writable());
  if (nothing_left) return end();
  choose_events();
}

// No more than waits by now is read at a time: an urgent byte that comes later could be the first
// of it, and nobody would know.
Relay::Next Relay::next_of_program() const {
  int bytes = 0;
  int at_mark = 0;
  if (::syscall(SYS_ioctl, inner_.get(), SIOCINQ, &bytes) != 0 || bytes <= 0) return {};
  if (::syscall(SYS_ioctl, inner_.get(), SIOCATMARK, &at_mark) != 0 || at_mark == 0) {
    return {.bytes = static_cast<size_t>(bytes)};
  }
  return {.bytes = 1, .urgent = true};
}

void Relay::from_program() {
  while (program_sends_) {
    const MutableBytes room = session_->out().room();
    if (room.empty()) return;
    const Next next = next_of_program();
    const bool known = next.bytes > 0;
    const size_t most = known ? std::min(room.size(), next.bytes) : 1;
    const ssize_t n =
        ::recv(inner_.get(), room.data(), most, MSG_DONTWAIT | (known ? 0 : MSG_PEEK));
    if (n > 0) {
      if (!known) continue;
      session_->out().filled(static_cast<uint32_t>(n));
      if (next.urgent) session_->out().mark_urgent();
      session_->process();
    } else if (n == 0) {
      program_sends_ = false;
      session_->out().end_sending();
    } else if (errno == ECONNRESET) {
      // It closed its socket with data that it had not read.
      program_sends_ = false;
      session_->abort();
    } else if (errno != EINTR) {
      return;
    }
  }
}

void Relay::to_program() {
  ReceiveQueue& received = session_->in().received();
  while (!received.empty()) {
    const UrgentMark& mark = session_->in().urgent();
    const bool urgent = mark.is_next();
    // What the program has read by MSG_OOB is left out.
    const bool passed = mark.is_left_out() && !mark.waits();
    const Bytes front = received.front();
    const Bytes bytes = front.first(urgent ? 1 : mark.until(front.size()));
    if (!program_reads_ || passed) {
      session_->in().take(bytes.size());
      continue;
    }
    const int how = urgent && mark.waits() ? MSG_OOB : 0;
    const ssize_t n =
        ::send(inner_.get(), bytes.data(), bytes.size(), how | MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n > 0) {
      session_->in().take(static_cast<size_t>(n));
      session_->process();
    } else if (errno == EPIPE || errno == ECONNRESET) {
      program_reads_ = false;
      if (closed_) session_->abort();
    } else if (errno != EINTR) {
      return;
    }
  }
  if (session_->in().at_end() && !std::exchange(told_end_, true)) {
    (void)::shutdown(inner_.get(), SHUT_WR);
  }
}

// What the program sends comes to nothing: a call of it that waits for room ends, though there may
// be data that the program has still to read.
void Relay::refuse_program() {
  if (!session_->broken() || std::exchange(refused_, true)) return;
  program_sends_ = false;
  (void)::shutdown(inner_.get(), SHUT_RD);
}

void Relay::choose_events() {
  if (!watched_) return;
  uint32_t events = 0;
  const std::lock_guard lock{session_->lock};
  // Its end is read behind its bytes: EPOLLRDHUP would tell of it again and again before.
  if (program_sends_ && !session_->out().room().empty()) events |= EPOLLIN;
  if (!session_->in().received().empty()) events |= EPOLLOUT;
  if (events != events_) loop_.change(inner_.get(), events_ = events);
}

void Relay::end() {
  over_ = true;
  if (resets_at_close(shadow_)) {
    const std::lock_guard lock{session_->lock};
    session_->abort();
  }
  fabric_.close(session_);
  // It destroys this.
  loop_.post(std::move(ended_));
}

}  // namespace weft::sdp
