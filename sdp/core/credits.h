// How many messages a side may send (spec/sdp 4), and the numbers that messages bear.
#pragma once

#include <cstdint>

#include "sdp/wire/bsdh.h"

namespace weft::sdp {

class Credits {
 public:
  // `own` and `peer`: receives that each side said it has in Hello and HelloAck.
  Credits(uint16_t own, uint16_t peer)
      : all_(own),
        posted_(own),
        told_limit_(own),
        peer_all_(peer),
        peer_posted_(peer),
        peer_limit_(peer) {}

  // What may be sent now.
  uint32_t usable() const;
  bool data_may_go() const { return usable() >= kForData; }
  bool control_may_go() const;
  // Whether the peer has to be told of receives, though there is nothing else to say.
  bool news() const;

  // A message goes out: fills in its numbers.
  void send(Bsdh& header);
  // A message came in. False if its number is not the next one's, or it acknowledges what cannot
  // be.
  bool take(const Bsdh& header);
  uint32_t last_taken() const { return taken_; }
  uint32_t last_sent() const { return mseq_; }
  // Whether the peer has taken this side's message of that number.
  bool peer_has_taken(uint32_t mseq) const { return static_cast<int32_t>(peer_ack_ - mseq) >= 0; }
  // Whether the peer, by its last message, has all receives back into which this side has sent.
  bool peer_has_taken_all() const { return peer_ack_ == mseq_ && peer_posted_ >= peer_all_; }
  // Whether the peer may send data, as far as it was told.
  bool peer_may_send_data() const { return told_limit_ - taken_ >= kForData; }
  // A receive is posted again.
  void post() { ++posted_; }

  // While a cancel is worked on, the peer is not told that it was taken (spec/sdp 6, 4).
  void hold_acknowledgement() { ack_limit_ = taken_ - 1, held_ = true; }
  void release_acknowledgement() { held_ = false; }

 private:
  static constexpr uint32_t kForControl = 2;
  // What Data leaves is enough for a message without it from each side (spec/sdp 4).
  static constexpr uint32_t kForData = kForControl + 2;
  uint32_t acknowledged() const { return held_ ? ack_limit_ : taken_; }
  // The number up to which the peer could send if it were told now, and whether that is more than
  // it was told. Receives do not go away, so on both sides the highest such number holds: what is
  // told while an acknowledgement is held is less than what is there.
  uint32_t limit() const { return acknowledged() + posted_; }
  bool raises() const { return static_cast<int32_t>(limit() - told_limit_) > 0; }

  uint16_t all_;
  uint16_t posted_;  // receives of this side
  uint32_t told_limit_;
  uint16_t peer_all_;
  uint16_t peer_posted_;  // receives of the peer, by its last message
  uint32_t peer_limit_;   // the number up to which this side may send
  uint32_t peer_ack_ = 0;
  uint32_t mseq_ = 0;
  uint32_t taken_ = 0;
  uint32_t ack_limit_ = 0;
  bool held_ = false;
};

}  // namespace weft::sdp
