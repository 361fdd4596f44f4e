// What the mirror shows to whoever waits for its other end by poll(2), epoll or a call that sleeps:
// a byte in it (a token) says that there is something to read, a full buffer that there is no room,
// a shut half that the peer has ended (design/27). As no bytes pass a half that is shut, and those
// that are left might have to by a relay, it is shut when all is read, unless it is asked for. With
// the session's lock. `fd`: a descriptor of the program's end.
#pragma once

#include <cstdint>

#include "sdp/loop/file.h"
#include "sdp/rdma/session.h"

namespace weft::sdp {

class Readiness {
 public:
  // `inner` is the library's end.
  explicit Readiness(File inner) : inner_(std::move(inner)) {}
  int fd() const { return inner_.get(); }
  // It shows nothing any more once that is false.
  bool open() const { return static_cast<bool>(inner_); }
  void close() { inner_.reset(); }
  // For somebody who uses the mirror as a socket: it shows nothing of its own.
  File hand_over() { return std::move(inner_); }
  void clear(int fd);

  struct For {
    bool edges = false;   // each arrival is told, for those who wait for edges
    bool takers = false;  // who sleeps in a read passes an urgent byte, which is nothing to read
    bool ends = false;    // the peer's end is asked for, also in front of data (POLLRDHUP)
  };
  // Shows the session's state; true if that is more than before.
  bool show(Session& session, const For& who);
  // Wakes who waits for urgent data, by a token.
  void show_urgent();
  // Whether show() would tell of room.
  bool hides_room_that_is(Session& session) const { return full_ && !session.out().room().empty(); }
  void show_room();
  // Both halves have ended: there is nothing to wait for.
  void show_end();
  void hide_room(int fd);
  void drop_tokens(int fd);
  bool has_tokens() const { return tokens_ > 0; }
  bool hides_room() const { return full_; }
  // So many tokens that there will soon be no more edges: they are to be dropped.
  bool is_crowded() const { return tokens_ > kMostTokens / 2; }

 private:
  // More would not tell more.
  static constexpr int kMostTokens = 64;
  File inner_;
  int tokens_ = 0;
  uint64_t told_ = 0;  // of all that was received, by a token
  bool full_ = false;
  bool ended_ = false;
  bool gone_ = false;  // nothing can be sent either
};

}  // namespace weft::sdp
