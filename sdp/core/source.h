// The sending half of a connection: its mode, and the buffer that it advertises for Read ZCopy
// (spec/sdp 5, 6).
#pragma once

#include <cstdint>
#include <optional>

#include "sdp/wire/extended_headers.h"

namespace weft::sdp {

class Source {
 public:
  // What became of an advertised buffer. The first `bytes` of it are with the peer; the rest is to
  // be sent as Data, or not at all.
  struct Outcome {
    uint32_t bytes = 0;
  };

  Mode mode() const { return mode_; }
  bool may_send_data() const { return !advert_; }
  // Whoever advertised the last buffer must have heard what became of it, or another thread that
  // advertises would take that for its own.
  bool may_advertise() const { return !advert_ && !outcome_ && mode_ != Mode::buffered; }

  // A SrcAvail for `length` bytes goes out, as message `mseq`.
  void advertise(uint32_t length, uint32_t mseq) {
    advert_ = Advert{.length = length, .mseq = mseq};
  }
  // The user cannot wait any longer. False if there is nothing to take back, or it was asked
  // before.
  bool cancel();

  // Messages of the peer. False: there is no buffer of which it could speak, or more bytes were
  // read than it has.
  bool on_read(uint32_t bytes);
  bool on_send_sm();
  bool on_mode_change(Mode mode);
  // The peer would rather be written to: a SinkAvail that holds. `taken`: the last message of this
  // side that the peer had taken then. A peer that had the buffer by then would not have sent it.
  bool on_sink_avail(uint32_t taken);

  // A ModeChange goes out. Only one that is allowed, with nothing advertised.
  void change_mode(Mode mode) { mode_ = mode; }

  // How much of the buffer the peer has read so far.
  uint32_t read() const { return advert_ ? advert_->read : 0; }
  // What became of it, once.
  std::optional<Outcome> take_outcome();

 private:
  struct Advert {
    uint32_t length = 0;
    uint32_t read = 0;
    uint32_t mseq = 0;
    bool cancelled = false;
  };
  void end() { outcome_ = Outcome{advert_->read}, advert_.reset(); }

  Mode mode_ = Mode::combined;
  std::optional<Advert> advert_;
  std::optional<Outcome> outcome_;
};

}  // namespace weft::sdp
