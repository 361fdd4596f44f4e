// The receiving half of a connection: its mode, and the buffer that the peer advertises for Read
// ZCopy (spec/sdp 5, 6).
#pragma once

#include <cstdint>
#include <optional>

#include "sdp/wire/extended_headers.h"

namespace weft::sdp {

class Sink {
 public:
  // What can be read now.
  struct Piece {
    uint32_t stag = 0;
    uint64_t to = 0;
    uint32_t length = 0;
  };

  Mode mode() const { return mode_; }
  bool advertised() const { return advert_.has_value(); }
  bool reading() const { return advert_ && advert_->in_flight > 0; }
  // Bytes that the peer offers and that no Read has been started for. None once it took them back.
  uint32_t available() const;

  // A Read of the next bytes of the buffer, at most `most`. Only when there are some.
  Piece start_read(uint32_t most);
  // The oldest Read has ended; these are the bytes to answer with RdmaRdCompl. When `drop` is set,
  // a SendSm has to follow.
  struct Answer {
    uint32_t bytes = 0;
    bool drop = false;
  };
  Answer finish_read(uint32_t bytes);
  // The user will not read the rest. Only when nothing is being read.
  void drop() { advert_.reset(); }

  // Messages of the peer. False: not allowed in this mode, or with what is under way.
  bool on_src_avail(const SrcAvail& advert, uint32_t payload);
  // Bytes of the payload of such a message that are part of the stream (spec/sdp 6, 2).
  static uint32_t counted(uint32_t payload) { return payload < kReadAgain ? 0 : payload; }
  bool on_data(uint32_t payload) const { return payload == 0 || !advert_; }
  bool on_mode_change(Mode mode);
  // What a cancel asks for now: nothing, a SendSm, or to wait for Reads under way.
  enum class Cancel : uint8_t { nothing, drop, wait };
  Cancel on_cancel();

 private:
  static constexpr uint32_t kReadAgain = 64;
  struct Advert {
    SrcAvail buffer;
    uint32_t started = 0;    // bytes for which a Read was started, or that came as payload
    uint32_t in_flight = 0;  // bytes of Reads that have not ended
    bool cancelled = false;
  };
  Mode mode_ = Mode::combined;
  std::optional<Advert> advert_;
};

}  // namespace weft::sdp
