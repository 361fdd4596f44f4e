// What a port says itself, and no session of it: COOKIE, WAIT, REP, REJ and DREP to those who ask
// (spec/wdp 4.3), and its own questions. Nobody waits for what finds no room here: whoever needs it
// asks again.
#pragma once

#include <deque>
#include <vector>

#include "wdp/counters.h"
#include "wdp/handshake.h"
#include "wdp/refusals.h"
#include "wdp/ud_queue.h"

namespace weft::wdp {

// An answer leaves from the address that the question came to (spec/wdp 4.3).
inline Path back_to(const UdReception& how) {
  return {.to = how.from, .from = how.to};
}

// One for each port. Engine holder only.
class PortAnswers {
 public:
  static constexpr size_t kMost = 64;

  // To whom `how` came from.
  void say(const wire::WdpCtl& c, const UdReception& how);
  // All that it has to say, to its peer.
  void say_of(Handshake& handshake);
  // A REJ, and the same to copies of the REQ that come late.
  void refuse(const wire::WdpCtl& req, wire::RejReason reason, const UdReception& how);
  // A REQ of `size` bytes came that was refused of late: it gets the same, where that is not too
  // much for its size. False: it was not.
  bool repeat(const RequestKey& request, size_t size, const UdReception& how);

  bool ready() const { return !answers_.empty(); }
  // One datagram, unless the train has some already.
  void fill(Train& train);

  // REJs among it.
  const RejCounts& rejections() const { return rejections_; }

 private:
  struct Answer {
    Path path;
    std::vector<std::byte> datagram;
  };
  // False: there are too many already, and it is not said.
  bool push(Answer answer);

  std::deque<Answer> answers_;
  Refusals refusals_;
  RejCounts rejections_;
};

}  // namespace weft::wdp
