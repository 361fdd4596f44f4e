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

  // A sender has said with which number it begins; its lane has begun.
  void begin();
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

  const Shape shape_;
  const std::function<void(const nlohmann::json&)> tell_;
  const uint32_t stream_;
  Lane& lane_;
  const bool reliable_;
  std::vector<std::vector<std::byte>> held_;  // by name
  bool told_foreign_ = false;                 // of this session
};

}  // namespace weft::stream
