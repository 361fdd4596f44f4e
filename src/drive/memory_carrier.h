// Of a stream's driver, what it does where the bytes pass through memory of both ends
// (spec/same-host): whether they do, who is told of what comes, and what the peer is still referred
// to (docs/design/25).
#pragma once

#include "engine/event_handler.h"
#include "engine/runtime.h"
#include "port/byte_stream.h"
#include "rdmap/stream.h"

namespace weft::drive {

// Engine holder only.
class MemoryCarrier {
 public:
  // `bytes`: of the driver's byte stream; nullptr: it passes through the kernel alone.
  MemoryCarrier(port::SharedBytes* bytes, engine::EventHandler& driver, rdmap::Stream& stream)
      : bytes_(bytes), driver_(driver), stream_(stream) {}

  // The bytes, where they pass through memory, or may yet; else nullptr.
  port::SharedBytes* bytes() const { return bytes_; }
  // The peer has not said yet whether they do: nothing can be sent.
  bool undecided() const {
    return bytes_ != nullptr && bytes_->carrier() == port::SharedBytes::Carrier::undecided;
  }
  // The byte stream is new.
  void begin(engine::Token& token);
  // The descriptor is readable.
  void hear(engine::Token& token);
  // The byte stream is about to be closed.
  void end(engine::Token& token);

  // EventHandler::use_descriptor(). `waits_for_room`: send() had not taken all.
  void use_descriptor(engine::Token& token, bool on, bool waits_for_room);
  // The visit is over: whoever sleeps on the descriptor is woken up by what comes, and by what is
  // there already.
  void listen(engine::Token& token, bool waits_for_room);

  // Is there something to be done without any call of the kernel's?
  bool has_work(bool waits_for_room) const {
    return (stream_.wants_bytes() && bytes_->has_input()) ||
           (waits_for_room && bytes_->has_room()) || bytes_->copies_wanted();
  }
  // While this has not changed, there is not, unless the stream is visited meanwhile.
  port::PeerWord work_word(bool waits_for_room) const {
    if (waits_for_room || bytes_->refers_now()) return {};
    return bytes_->input_word();
  }
  // The program may have back what the peer was referred to. The stream is told where it is gone.
  void take_back(engine::Token& token);
  // The same from inside a call into the stream, which tell_loss() tells later.
  void take_back_inside();
  // False: there is nothing to tell.
  bool tell_loss();
  // Is the peer referred to memory of this process that it has not pulled?
  bool refers_now() const { return bytes_ != nullptr && bytes_->refers_now() && !bytes_->ended(); }
  // The stream is to be closed, and the peer has not pulled all: references end with this process,
  // at the latest. True: not yet; look again at close_by().
  bool waits_for_pull(engine::Token& token);
  Time close_by() const { return close_by_; }

 private:
  port::SharedBytes* bytes_;
  engine::EventHandler& driver_;
  rdmap::Stream& stream_;
  const void* lost_ = nullptr;     // memory that was gone when it was taken back
  bool listens_ = true;            // the descriptor tells of what is in memory
  Time pull_by_ = Time::never();   // closing: the peer has so long to pull what was said
  Time close_by_ = Time::never();  // when to look whether it has
};

}  // namespace weft::drive
