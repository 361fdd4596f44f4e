// The bytes of an RC queue pair that is its own peer (spec/addressing 4): what it sends is what it
// receives. They wait in memory of the process, and no socket is needed.
#pragma once

#include <memory>
#include <vector>

#include "port/byte_stream.h"

namespace weft::drive {

// Engine holder only.
class LoopBytes final : public port::ByteStream {
 public:
  // That wait, at most.
  static constexpr size_t kMost = 256 * 1024;

  // `own`: where this end is, and so the other one.
  explicit LoopBytes(const port::Address& own) : own_(own), state_(std::make_unique<State>()) {}

  // Has receive() anything to tell: bytes, or the end behind them? No descriptor says so.
  bool readable() const { return waiting() > 0 || state_->ended; }
  // Gives back memory that nothing waits in.
  void trim();

  // --- port::ByteStream
  // Throws std::bad_alloc, and has taken nothing then.
  Transfer send(std::span<const IoVec> pieces) const override;
  Transfer receive(std::span<const IoVec> pieces) const override;
  void shut_write() const override { state_->ended = true; }
  void reset() override { close(); }
  void close() override { *state_ = {.bytes = {}, .read = 0, .ended = true}; }
  // Nothing is on its way to another host.
  Unacknowledged unacknowledged() const override { return {}; }
  port::Address peer() const override { return own_; }
  int fd() const override { return -1; }

 private:
  struct State {
    std::vector<std::byte> bytes;
    size_t read = 0;  // from their front
    bool ended = false;
  };
  size_t waiting() const { return state_->bytes.size() - state_->read; }

  const port::Address own_;
  const std::unique_ptr<State> state_;
};

}  // namespace weft::drive
