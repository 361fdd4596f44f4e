// What the peer may send, and what of it has come and not been read. The receive buffer is two
// halves, which are granted by turns, each when nothing of it is left to read. Knows the protocol
// alone: no memory, no queue pair (spec/rsockets 4). One user at a time.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

namespace weft::rsockets {

class ReceiveWindow {
 public:
  // `buffer` bytes; `messages` receives are posted. The first half and all messages are granted
  // from the beginning.
  ReceiveWindow(uint32_t buffer, uint16_t messages)
      : half_(buffer / 2),
        messages_(messages),
        granted_(half_),
        free_(half_),
        tell_at_(static_cast<uint16_t>(messages / 2)) {}

  uint32_t half() const { return half_; }
  uint32_t size() const { return half_ * 2; }

  // A message says that `n` bytes were written. False when the peer had no right to them: the
  // connection is to end.
  bool received(uint32_t n) {
    if (n == 0 || n > granted_ || n > half_ - written_ || unread_.size() >= messages_) return false;
    granted_ -= n;
    written_ = (written_ + n) % half_;
    available_ += n;
    unread_.push_back(n);
    return true;
  }
  // Any other message: it takes a credit as well.
  void received_message() { ++consumed_; }

  // Bytes to read, from this place of the buffer on; they go on at its beginning.
  uint32_t available() const { return available_; }
  uint32_t offset() const { return offset_; }
  // `n` of them have been read.
  void read(uint32_t n) {
    available_ -= n;
    free_ += n;
    offset_ = (offset_ + n) % size();
    while (n > 0) {
      uint32_t& first = unread_.front();
      const uint32_t part = n < first ? n : first;
      first -= part;
      n -= part;
      if (first > 0) break;
      unread_.pop_front();
      ++consumed_;
    }
  }

  // Whether the peer is to be told of more.
  bool has_news() const { return has_half() || static_cast<int16_t>(consumed_ - tell_at_) >= 0; }
  bool has_half() const { return free_ >= half_; }

  struct News {
    std::optional<uint32_t> half;  // where in the buffer a half begins that may be written
    uint16_t limit;                // the peer's messages up to this number
  };
  News take_news() {
    News n{std::nullopt, static_cast<uint16_t>(consumed_ + messages_)};
    tell_at_ = static_cast<uint16_t>(consumed_ + messages_ / 2);
    if (has_half()) {
      n.half = next_half_;
      next_half_ = half_ - next_half_;
      free_ -= half_;
      granted_ += half_;
    }
    return n;
  }

 private:
  uint32_t half_;
  uint16_t messages_;
  uint32_t granted_;      // bytes that the peer may still write
  uint32_t written_ = 0;  // of the half that it writes to; no message goes beyond
  uint32_t free_;         // bytes that are neither granted nor unread
  uint32_t next_half_ = half_;
  uint32_t available_ = 0;
  uint32_t offset_ = 0;
  std::deque<uint32_t> unread_;  // bytes of each message
  uint16_t consumed_ = 0;
  uint16_t tell_at_;
};

}  // namespace weft::rsockets
