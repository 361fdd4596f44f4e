// Moves bytes between a session and a socket of the kernel's, both ways, until both sides have
// ended (design/27). Runs on the loop's thread.
#pragma once

#include <memory>

#include "sdp/loop/loop.h"
#include "sdp/rdma/fabric.h"

namespace weft::sdp {

class Relay {
 public:
  // `inner` is the other end of what the program has, `shadow` has its options, if it has any.
  // `ended` is done once, when the program has closed all copies of its end, and destroys the
  // relay.
  Relay(Loop& loop, Fabric& fabric, std::shared_ptr<Session> session, File inner, int shadow,
        Loop::Ready ended);
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;
  ~Relay();

  void start();
  // The program has no copy any more, whether it was heard of or not.
  bool program_has_closed() const;

 private:
  void turn();
  void turn_soon();
  // What the program has written: bytes that may be read at once, or one that is urgent.
  struct Next {
    size_t bytes = 0;
    bool urgent = false;
  };
  Next next_of_program() const;
  void from_program();
  void to_program();
  void refuse_program();
  void choose_events();
  void end();

  Loop& loop_;
  Fabric& fabric_;
  const std::shared_ptr<Session> session_;
  File inner_;
  const int shadow_;
  Loop::Ready ended_;
  bool program_sends_ = true;
  bool program_reads_ = true;
  bool told_end_ = false;
  bool refused_ = false;  // what the program sends
  bool closed_ = false;   // the program has no copy any more
  bool watched_ = false;
  bool over_ = false;
  bool turns_soon_ = false;  // with the session's lock
  uint32_t events_ = 0;
};

}  // namespace weft::sdp
