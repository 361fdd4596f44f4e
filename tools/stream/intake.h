// Brings packets that were read from a socket to their places in the ring, those that belong to the
// stream. One stream, the thread of the lanes.
#pragma once

#include <vector>

#include "stream/inlet.h"
#include "stream/lane.h"

namespace weft::stream {

class Intake {
 public:
  // `reliable`: the transport brings what a sender sent and nothing else. So its numbers are
  // believed, and it can be held up: nothing is taken that finds no room.
  Intake(const InletOptions& options, uint32_t stream, Lane& lane, bool reliable);

  // A sender has said with which number it begins, and what its packets look like; its lane has
  // begun.
  void begin(const Shape& shape);
  // False where it found no room: it has to be offered again.
  bool take(ConstPacket packet, int64_t now_ns);
  // The same, of a packet whose header was read.
  bool take(Header header, ConstPacket packet, int64_t now_ns);
  // Counts a packet that is not of this stream, and tells of the first one.
  void refuse_foreign(const Header& header);
  // Nothing more comes for now.
  void settle(int64_t now_ns);

 private:
  void refuse(ConstPacket packet);
  void hold(HeldPacket name, ConstPacket packet);
  void believe(const Continuity::Judgement& judgement);
  void place_believed(int64_t now_ns);
  bool place(uint64_t number, bool flagged, ConstPacket packet, int64_t now_ns);

  bool comes_behind_its_end(int64_t now_ns) const;
  // Whether a packet's header can only be read when others have come.
  bool has_to_learn(ConstPacket packet, int64_t now_ns) const;
  void learn(int64_t now_ns);
  void tell_what_was_learned() const;

  const Shape told_;
  Shape shape_;  // with what the sender has said, or its packets have shown
  const std::function<void(const nlohmann::json&)> tell_;
  const uint32_t stream_;
  Lane& lane_;
  const bool reliable_;
  std::vector<std::vector<std::byte>> held_;    // by name
  std::vector<std::vector<std::byte>> unread_;  // packets that wait for learn()
  bool told_foreign_ = false;                   // of this session
};

}  // namespace weft::stream
