// Where the urgent byte of a stream stands (MSG_OOB), with the rules of Linux's TCP: there is one
// at a time, it has its place among the bytes that wait to be read, and a read stops in front of
// it. It is left out of what is read unless it is in line (SO_OOBINLINE). The newest one counts; an
// older one is an ordinary byte from then on.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace weft::sdp {

class UrgentMark {
 public:
  // The byte has come, behind `ahead` others that wait to be read.
  void came(size_t ahead, std::byte byte) {
    state_ = State::unread;
    ahead_ = ahead;
    byte_ = byte;
    ++count_;
  }
  // So many bytes were taken from what waits to be read.
  void taken(size_t bytes) {
    if (state_ == State::none) return;
    if (bytes > ahead_) {
      state_ = State::none;
    } else {
      ahead_ -= bytes;
    }
  }
  void set_in_line(bool in_line) { in_line_ = in_line; }
  bool in_line() const { return in_line_; }

  // The next byte to read is the one.
  bool is_next() const { return state_ != State::none && ahead_ == 0; }
  // The same, and a read leaves it out.
  bool is_left_out() const { return is_next() && !in_line_; }
  // Of `bytes` that wait, the first of which is not left out: how many a read may have at once.
  size_t until(size_t bytes) const {
    return state_ != State::none && ahead_ > 0 ? std::min(ahead_, bytes) : bytes;
  }
  // Of `bytes` that wait: how many there are to read, for poll(2).
  size_t readable(size_t bytes) const { return is_left_out() && bytes > 0 ? bytes - 1 : bytes; }
  // The same, for FIONREAD: none behind the mark.
  size_t counted(size_t bytes) const {
    return state_ != State::none && !in_line_ ? std::min(ahead_, bytes) : bytes;
  }

  // Whether recv(2) with MSG_OOB would find it, in line or not: what POLLPRI says.
  bool waits() const { return state_ == State::unread; }
  std::byte byte() const { return byte_; }
  void read() { state_ = State::read; }
  // How many have come.
  uint64_t count() const { return count_; }

 private:
  enum class State : uint8_t { none, unread, read };
  State state_ = State::none;
  bool in_line_ = false;
  std::byte byte_{};
  size_t ahead_ = 0;
  uint64_t count_ = 0;
};

}  // namespace weft::sdp
