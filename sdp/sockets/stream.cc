#include "sdp/sockets/stream.h"

#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>
#include <mutex>
#include <new>
#include <utility>

#include "sdp/sockets/failed.h"
#include "sdp/sockets/mirror.h"
#include "sdp/sockets/table.h"

namespace weft::sdp {

Stream::Stream(Loop& loop, Fabric& fabric, std::shared_ptr<Session> session, File inner,
               const File& shadow, uint64_t cookie, std::function<void()> ended)
    : loop_(loop),
      fabric_(fabric),
      session_(std::move(session)),
      shadow_(shadow.get()),
      ended_(Loop::ready(std::move(ended))),
      end_(*this, cookie),
      waiting_(loop, *session_, end_, std::move(inner),
               [this] { loop_.post(std::move(show_error_)); }),
      urgent_(*session_, end_, waiting_, shadow_),
      receiving_(*session_, end_, waiting_, urgent_),
      sending_(*session_, end_, waiting_, shadow_) {}

Stream::~Stream() = default;

std::shared_ptr<Stream> Stream::make(Loop& loop, Fabric& fabric, std::shared_ptr<Session> session,
                                     File inner, const File& shadow, uint64_t cookie,
                                     std::function<void()> ended) {
  std::shared_ptr<Stream> made{new Stream(loop, fabric, std::move(session), std::move(inner),
                                          shadow, cookie, std::move(ended))};
  const auto later = [weak = std::weak_ptr(made)](auto what) {
    return Loop::ready([weak, what] {
      if (const auto still = weak.lock()) what(*still);
    });
  };
  made->show_error_ = later([](Stream& self) { self.waiting_.show_error(); });
  made->begin_relay_ = later([](Stream& self) { self.start_relay(); });
  made->end_soon_ = later([](Stream& self) { self.end(); });
  return made;
}

void Stream::start() {
  // A program with several threads may have closed it already.
  if (relay_ || end_.ended()) return;
  fabric_.keep_alive(*session_, keepalive_of(shadow_));
  // Its edges, for the kernel would tell of an end again and again.
  const std::lock_guard lock{session_->lock};
  session_->step([this] {
    (void)loop_.watch(waiting_.mirror().fd(), EPOLLRDHUP | EPOLLET,
                      [this](uint32_t events) { on_inner(events); });
  });
  session_->on_news = [this] { waiting_.on_news(); };
  session_->poll();
  waiting_.keep_going();
}

void Stream::take_keepalive() {
  loop_.post([this, self = shared_from_this()] {
    if (!end_.ended()) fabric_.keep_alive(*session_, keepalive_of(shadow_));
  });
}

void Stream::greet() {
  const std::lock_guard lock{session_->lock};
  session_->greet();
  session_->process();
  session_->poll();
}

void Stream::is_peer_of(const std::shared_ptr<Stream>& other) {
  const std::lock_guard lock{session_->lock};
  waiting_.is_peer_of(std::shared_ptr<Waiting>(other, &other->waiting_));
}

void Stream::on_inner(uint32_t events) {
  if (end_.relayed()) return;
  // It is also told of when both halves have ended, with data that the program still reads.
  if ((events & (EPOLLHUP | EPOLLERR)) != 0 && !end_.drop_closed()) return end();
  if ((events & EPOLLRDHUP) != 0) {
    const std::lock_guard lock{session_->lock};
    session_->out().end_sending();
    session_->process();
    session_->poll();
    waiting_.keep_going();
  }
}

void Stream::on_closed() {
  waiting_.close_urgent();
  // The shadow may be closed at once.
  const auto most = linger_of(shadow_);
  loop_.post(std::move(end_soon_));
  if (most && most->count() > 0 && !loop_.on_this_thread()) linger(*most);
}

// Until all that was sent, and the end, is with the peer. A signal ends it.
void Stream::linger(std::chrono::seconds most) {
  constexpr std::chrono::milliseconds kSignals{10};  // one may come just before a sleep
  const Handlers::Ran ran;
  const auto until = std::chrono::steady_clock::now() + most;
  SessionLock lock{session_->lock};
  while (!end_.relayed() && !session_->out().has_said_all() && !ran.any() &&
         std::chrono::steady_clock::now() < until) {
    session_->sleep(lock, kSignals);
  }
}

std::optional<ssize_t> Stream::receive(int fd, std::span<const iovec> to, int flags) {
  if ((flags & MSG_ERRQUEUE) != 0) return sending_.take_report() ? 0 : failed(EAGAIN);
  if (end_.relayed()) return std::nullopt;
  if ((flags & MSG_OOB) != 0) return urgent_.receive(fd, to, flags);
  return receiving_.receive(fd, to, flags);
}

std::optional<int> Stream::take_error(int fd) {
  const std::lock_guard lock{session_->lock};
  if (end_.relayed()) return std::nullopt;
  session_->poll();
  const int error = session_->take_error();
  if (error != 0) waiting_.on_error_told(fd);
  return error;
}

void Stream::leave_error(int error) {
  const std::lock_guard lock{session_->lock};
  if (error == session_->error()) session_->leave_error();
}

void Stream::take_buffer_sizes() {
  const BufferSizes sizes = chosen_buffer_sizes(shadow_);
  const std::lock_guard lock{session_->lock};
  session_->limit_buffers(sizes.send, sizes.receive);
}

bool Stream::shutdown(int fd, int how) {
  SessionLock lock{session_->lock};
  if (end_.relayed()) return true;
  session_->poll();
  const bool connected = !is_over();
  if (how == SHUT_WR || how == SHUT_RDWR) {
    // What is in it then says later that there was an error, and nothing can be put there any more.
    if (end_.shut_writing() && waiting_.mirror().open()) {
      waiting_.mirror().show_room();
      end_.put_byte(fd);
    }
    session_->out().end_sending();
  }
  if (how == SHUT_RD || how == SHUT_RDWR) end_.shut_reading();
  if (end_.shut_for_reading() && end_.shut_for_writing()) session_->in().refuse_data();
  session_->process();
  session_->poll();
  waiting_.keep_going();
  waiting_.show_to_peer_here(lock);
  if (!connected) errno = ENOTCONN;
  return connected;
}

void Stream::reset() {
  const std::lock_guard lock{session_->lock};
  session_->abort();
}

// Of TCP's states it is the last one.
bool Stream::is_over() const {
  return session_->error() != 0 || session_->finished();
}

int Stream::tcp_state() {
  const std::lock_guard lock{session_->lock};
  session_->poll();
  if (is_over()) return TCP_CLOSE;
  if (session_->in().got_end()) return session_->out().ending() ? TCP_LAST_ACK : TCP_CLOSE_WAIT;
  return session_->out().ending() ? TCP_FIN_WAIT2 : TCP_ESTABLISHED;
}

void Stream::relay_from_now(int fd) {
  const std::lock_guard lock{session_->lock};
  if (!end_.direct() || !waiting_.mirror().open()) return;
  const int at = end_.open_descriptor(fd);
  if (at < 0) return;  // nobody has it any more
  waiting_.leave_epoll();
  waiting_.mirror().clear(at);
  waiting_.close_urgent();
  urgent_.put_in_line(at);
  end_.set_relayed();
  session_->relayed();
  loop_.post(std::move(begin_relay_));
}

void Stream::start_relay() {
  if (end_.ended()) return;
  Readiness& mirror = waiting_.mirror();
  loop_.forget(mirror.fd());
  try {
    relay_ = std::make_unique<Relay>(loop_, fabric_, session_, mirror.hand_over(), shadow_,
                                     std::move(ended_));
  } catch (const std::bad_alloc&) {
    fabric_.close(session_);
    loop_.post(std::move(ended_));
    throw;
  }
  relay_->start();
}

bool Stream::ends() const {
  return !Table::holds(*this) && (relay_ == nullptr || relay_->program_has_closed());
}

void Stream::end() {
  {
    const std::lock_guard lock{session_->lock};
    if (!end_.direct()) return;
    end_.set_ended();
    if (resets_at_close(shadow_)) session_->abort();
    waiting_.close_mirror();
    sending_.close_reports();
  }
  fabric_.close(session_);
  loop_.post(std::move(ended_));
}

}  // namespace weft::sdp
