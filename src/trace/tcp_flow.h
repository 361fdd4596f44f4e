// One TCP connection as a capture shows it: turns what went through the socket's calls into
// segments with sequence numbers of their own, from a handshake to a FIN or RST.
//
// The numbers begin at 0 in both directions. Each side acknowledges all that the other one has sent
// so far: what the peer's kernel really acknowledged, and when, is not known here.
#pragma once

#include <vector>

#include "trace/frame_cutter.h"
#include "trace/packet.h"

namespace weft::trace {

class TcpFlow {
 public:
  // `active`: this end has connected. With `keep` above 0 every packet is a frame of MPA, of which
  // so many bytes are kept; else the packets are what the calls moved, cut at kMostPayload.
  TcpFlow(PacketSink& sink, const Endpoint& local, const Endpoint& peer, bool active, size_t keep);

  // The handshake.
  void open(int64_t at);
  // The first `bytes` of `pieces` were sent, or have come.
  void moved(int64_t at, Direction direction, std::span<const IoVec> pieces, size_t bytes);
  // The sending side of this direction was shut. Once; a second time says nothing.
  void finish(int64_t at, Direction direction);
  // The connection was reset. Nothing follows.
  void reset(int64_t at, Direction direction);
  // This end closed. Nothing follows.
  void close(int64_t at);

  const Endpoint& local() const { return sides_[0].end; }
  const Endpoint& peer() const { return sides_[1].end; }

 private:
  struct Side {
    Endpoint end;
    FrameCutter cutter;
    uint32_t next = 0;          // sequence number
    size_t unacknowledged = 0;  // bytes
    bool finished = false;
  };
  Side& of(Direction direction) { return sides_[direction == Direction::out ? 0 : 1]; }
  void segment(int64_t at, Direction direction, uint8_t flags, std::span<const IoVec> payload,
               size_t kept, size_t size);
  void control(int64_t at, Direction direction, uint8_t flags) {
    segment(at, direction, flags, {}, 0, 0);
  }
  void whole(int64_t at, Direction direction, FrameCutter::Input input);
  void frames(int64_t at, Direction direction, FrameCutter::Input input);
  void frame(int64_t at, Direction direction);
  void unfinished_frames(int64_t at);

  PacketSink& sink_;
  const bool active_;
  const size_t keep_;
  bool over_ = false;
  Side sides_[2];
  std::vector<IoVec> slice_;
};

}  // namespace weft::trace
