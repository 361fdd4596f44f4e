// Hears what a stream says and holds it against what it may say to any peer (spec/mpa 2.4, spec/mpa
// 3, spec/rdmap 2.2, spec/rdmap 4, spec/errors 4).
#pragma once

#include <deque>
#include <optional>

#include "fuzz/support/check.h"
#include "rdmap/limits.h"
#include "tests/support/frames.h"

namespace weft::fuzz {

class Listener {
 public:
  explicit Listener(const rdmap::StreamConfig& config) : config_(config) {}

  // Bytes as they come out of the socket. `heard`: bytes that the stream was told so far.
  void listen(Bytes bytes, uint64_t heard);

  // A Read or an Atomic of the stream that its peer has not answered.
  struct Request {
    bool atomic = false;
    Stag sink;
    uint64_t to = 0;  // of the next byte to send
    uint32_t left = 0;
    uint32_t id = 0;
  };
  std::deque<Request> requests;
  uint64_t messages() const { return messages_; }
  uint64_t frames() const { return frames_; }
  bool terminated() const { return terminated_; }
  uint64_t delivered() const { return delivered_; }

 private:
  void frame(const test::Frame& f, uint64_t heard);
  void judge_tagged(const test::Frame& f);
  void judge_untagged(const test::Frame& f);
  void judge_delivered(const test::Frame& f, uint64_t heard);

  const rdmap::StreamConfig config_;
  test::Buffer rest_;      // of an FPDU
  uint64_t position_ = 0;  // in the stream, markers included
  // The message that is being said: nothing may come in between (spec/rdmap 2.2).
  std::optional<test::Frame> open_;
  std::array<uint32_t, 4> msn_{1, 1, 1, 1};
  uint64_t frames_ = 0;
  uint64_t messages_ = 0;   // requests
  uint64_t delivered_ = 0;  // the last run that was reported
  bool terminated_ = false;
};

}  // namespace weft::fuzz
