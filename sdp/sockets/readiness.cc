#include "sdp/sockets/readiness.h"

#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>

#include "sdp/sockets/real.h"

namespace weft::sdp {
namespace {

// A mirror is full with a page; the kernel takes this for the least it can be.
constexpr int kSmallest = 1;
constexpr int kUsual = 212'992;

void set_buffer(int fd, int bytes) {
  (void)real().setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
}

}  // namespace

bool Readiness::show(Session& session, const For& who) {
  bool more = false;
  // Whoever took it in, what has come since the last token is an edge.
  const uint64_t pushed = session.in().received().pushed();
  const bool edge = who.edges && pushed != told_ && tokens_ < kMostTokens;
  const bool readable = session.in().shows_data() || (who.takers && session.in().readable());
  if (readable && (tokens_ == 0 || edge) &&
      ::send(inner_.get(), "", 1, MSG_DONTWAIT | MSG_NOSIGNAL) == 1) {
    ++tokens_;
    told_ = pushed;
    more = true;
  }
  // An error is shown by another way.
  if (session.error() != 0) return more;
  const bool shows_ends = !readable || who.ends;
  if (session.in().ended() && !ended_ && shows_ends) {
    ended_ = true;
    (void)::shutdown(inner_.get(), SHUT_WR);
    more = true;
  }
  // Also behind an end that was shown: nothing can be sent any more, which those who wait for room
  // have to know.
  if (session.gone() && !gone_ && shows_ends) {
    show_end();
    more = true;
  }
  if (!full_ || !(session.gone() || hides_room_that_is(session))) return more;
  show_room();
  return true;
}

void Readiness::show_urgent() {
  if (tokens_ >= kMostTokens) return;
  if (::send(inner_.get(), "", 1, MSG_OOB | MSG_DONTWAIT | MSG_NOSIGNAL) == 1) ++tokens_;
}

void Readiness::show_room() {
  std::array<char, 4096> pad{};
  while (::recv(inner_.get(), pad.data(), pad.size(), MSG_DONTWAIT) > 0) {
  }
  full_ = false;
}

void Readiness::show_end() {
  show_room();
  ended_ = true;
  gone_ = true;
  (void)::shutdown(inner_.get(), SHUT_RDWR);
}

void Readiness::hide_room(int fd) {
  static constexpr std::array<char, 4096> kPad{};
  if (!full_) set_buffer(fd, kSmallest);
  while (::syscall(SYS_sendto, fd, kPad.data(), kPad.size(), MSG_DONTWAIT | MSG_NOSIGNAL, nullptr,
                   0) > 0) {
  }
  full_ = true;
}

void Readiness::drop_tokens(int fd) {
  std::array<char, kMostTokens> token{};
  while (tokens_ > 0) {
    const long n = ::syscall(SYS_recvfrom, fd, token.data(), static_cast<size_t>(tokens_),
                             MSG_DONTWAIT, nullptr, nullptr);
    if (n <= 0) break;
    tokens_ -= static_cast<int>(n);
  }
}

void Readiness::clear(int fd) {
  drop_tokens(fd);
  tokens_ = 0;
  show_room();
  set_buffer(fd, kUsual);
}

}  // namespace weft::sdp
