// Whether a packet's number goes on from those before it, or its sender's counter was set anew. One
// number from nowhere changes nothing; several in a row that agree are believed, and none of them
// is lost. As RTP's receivers put a new source on probation (RFC 3550, appendix A.1).
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "stream/packet.h"

namespace weft::stream {

// A packet that waits for others to agree with it. Whoever asks keeps its bytes, if they are
// needed, under this name: 0 to Continuity::kMostHeld - 1.
using HeldPacket = uint32_t;

class Continuity {
 public:
  // Packets in a row that have to agree.
  static constexpr uint32_t kWitnesses = 8;
  static constexpr uint32_t kMostHeld = 4 * kWitnesses;
  // Numbers that an outage may leave out. What is further ahead is another count.
  static constexpr uint64_t kLongestOutage = uint64_t{1} << 23;

  // `ring`: numbers of a receiver's memory; what lies within it of the newest one needs no witness.
  explicit Continuity(uint64_t ring);

  enum class Answer : uint8_t {
    goes_on,   // take it
    foreign,   // it is of another origin than the stream's packets
    wait,      // keep it, by the name `held`
    believed,  // taken() are to be taken now, in this order; it is the last of them, named `held`
  };
  struct Judgement {
    Answer answer = Answer::goes_on;
    HeldPacket held = 0;
    // Of believed ones: the count begins anew with `first`. Else it goes on behind an outage.
    bool anew = false;
    uint64_t first = 0;  // the lowest number of them
  };
  struct Taken {
    HeldPacket held = 0;
    uint64_t number = 0;
    bool flagged = false;
  };

  // A stream begins whose sender has said with which number: `next`. Its origin is that of its
  // first packet.
  void begin();
  // Nothing is known of what comes next.
  void end();

  // Judges a packet with a number. `next`: the number behind the newest one that was taken, of a
  // stream that runs; nothing of one that does not.
  Judgement judge(const Header& header, std::optional<uint64_t> next);
  // A packet was taken without a word of this class: those that wait did so in vain.
  void went_on() { give_up_all(); }
  // Whether the number needs no witness: it lies within the ring of `next`.
  bool goes_on(uint64_t number, uint64_t next) const {
    return number < next + ring_ && number + ring_ >= next;
  }
  // The packets of the last judgement that believed, or of settle().
  const std::vector<Taken>& taken() const { return taken_; }
  // Nothing more comes for now. Of a stream that does not run, what most packets agree about is
  // believed; of one that does, what its sender says that it sent: numbers before `end`.
  std::optional<Judgement> settle(std::optional<uint64_t> next, std::optional<uint64_t> end);
  // Packets that waited in vain, since the last call.
  uint32_t take_given_up() { return std::exchange(given_up_, 0); }
  bool any_waits() const { return !waiting_.empty(); }
  const std::optional<Origin>& origin() const { return origin_; }

 private:
  struct Waiting {
    HeldPacket held = 0;
    uint64_t number = 0;
    Origin origin;
    bool flagged = false;
  };
  bool agree(const Waiting& a, const Waiting& b) const;
  uint32_t witnesses_of(const Waiting& packet) const;
  void give_up_oldest();
  void give_up_all();
  Judgement believe(const Waiting& packet, std::optional<uint64_t> next);

  uint64_t ring_;
  std::optional<Origin> origin_;
  std::vector<Waiting> waiting_;  // in the order in which they came
  std::vector<Taken> taken_;
  std::vector<HeldPacket> free_;
  uint32_t given_up_ = 0;
};

}  // namespace weft::stream
