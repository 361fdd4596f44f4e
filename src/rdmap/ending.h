// How a stream ends: which side has said FIN or Terminate, what is waited for, and for how long
// (spec/errors 4, spec/rdmap 5). No bytes: the stream writes them, and says what happened.
//
//   open --close--> draining --all is said--> finished --peer's FIN--> parting
//   open --leave--> leaving --all is said--> left --peer's FIN--> ended
//   open --error--> terminate_due --it is written--> terminate_out --FIN, peer's FIN--> (closed)
//   ending.cc has the whole table.
#pragma once

#include <optional>

#include "base/time.h"
#include "work/consumer.h"

namespace weft::rdmap {

class Ending {
 public:
  enum class State : uint8_t {
    open,
    draining,       // our FIN follows when requests and answers are through
    drained,        // they took too long: it follows what is with the kernel
    leaving,        // the queue pair is gone: it follows what is owed to the peer
    finished,       // it is out, and the peer's is not here
    left,           // the same, without a queue pair
    terminate_due,  // our Terminate goes out next
    terminate_out,  // it is written, or the peer sent one: our FIN goes out next
    parting,        // the peer's FIN came between FPDUs: what was begun may still go out
    ended,
  };
  enum class Event : uint8_t {
    close,              // the program wants an orderly end
    leave,              // the queue pair goes away
    failed,             // this side has something to say in a Terminate
    terminated,         // the peer said a Terminate
    peer_fin,           // between two FPDUs
    terminate_written,  // it is in the batch
    shut,               // our FIN is out
    waited,             // in vain, as long as the state allows
    moved,              // own requests went on while it waited
  };

  void on(Event event, Time now);
  // Nothing can follow any more.
  void end() { state_ = State::ended; }
  State state() const { return state_; }

  // Input is taken in and requests go out.
  bool live() const { return state_ < State::terminate_due; }
  // Orderly, and not through yet.
  bool closing() const { return state_ > State::open && state_ < State::terminate_due; }
  // Without a queue pair: what comes is discarded.
  bool leaving() const { return state_ == State::leaving || state_ == State::left; }
  bool terminating() const {
    return state_ == State::terminate_due || state_ == State::terminate_out;
  }
  bool shut() const { return shut_; }
  bool peer_fin() const { return peer_fin_; }
  // Nothing that is still to be sent can arrive.
  bool hopeless() const { return state_ == State::ended || given_up_; }

  // Our FIN goes out at this time at the earliest. never(): whenever the rest is said.
  void fin_not_before(Time when) { fin_at_ = when; }
  // What our FIN waits for when nothing else is left; never when nothing.
  Time fin_at() const { return closing() && !shut_ && !peer_fin_ ? fin_at_ : Time::never(); }

  // What the owner of the connection should do. `all_said`: of draining, no request or answer is
  // left.
  enum class Wish : uint8_t { none, shutdown_write, close, reset };
  Wish wish(bool all_said) const;

  Time deadline() const;
  // What the end was, when this was it.
  std::optional<work::StreamEnd::Kind> tick(Time now);

 private:
  State state_ = State::open;
  bool shut_ = false;
  bool peer_fin_ = false;
  bool given_up_ = false;  // the peer takes nothing any more
  Time wait_until_ = Time::never();
  Time fin_at_ = Time::never();
};

}  // namespace weft::rdmap
