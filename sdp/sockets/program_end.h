// What the program has of a connection: descriptors of the mirror's other end, and the halves that
// it has shut. Calls on the descriptors are the library's to answer, "direct" (design/27), until
// the connection goes over to a relay, or ends.
//
// Its state changes with the session's lock. `fd` is what a call was given: another thread may have
// closed it since.
#pragma once

#include <atomic>
#include <cstdint>

namespace weft::sdp {

class Stream;

class ProgramEnd {
 public:
  // `stream` is what Table knows the descriptors by, `cookie` that of the mirror's other end.
  ProgramEnd(const Stream& stream, uint64_t cookie) : stream_(stream), cookie_(cookie) {}
  ProgramEnd(const ProgramEnd&) = delete;
  ProgramEnd& operator=(const ProgramEnd&) = delete;

  // One of the descriptors: `fd`, unless that was closed since the call began. Its number may be
  // another file's then. -1: the program has none any more. Any thread.
  int descriptor(int fd) const;
  int any_descriptor() const;
  // The same as the kernel has it: what the table knows may be closed by the system call itself,
  // and does not know numbers beyond it.
  int open_descriptor(int fd) const;
  // Forgets descriptors that were closed by the system call itself. False: none is left.
  bool drop_closed() const;
  // Whether a call with these flags, of recv(2) and send(2), waits.
  bool blocks(int fd, int flags) const;
  // A byte that nobody reads comes into the library's end, where that is still open.
  void put_byte(int fd) const;

  // Any thread. It stays so.
  bool relayed() const { return relayed_; }
  // With the lock, or on the loop's thread, where it changes.
  bool ended() const { return ended_; }
  bool direct() const { return !relayed_ && !ended_; }
  void set_relayed() { relayed_ = true; }
  void set_ended() { ended_ = true; }

  bool shut_for_reading() const { return shut_for_reading_; }
  void shut_reading() { shut_for_reading_ = true; }
  bool shut_for_writing() const { return shut_for_writing_; }
  // False: it was before.
  bool shut_writing();

 private:
  const Stream& stream_;
  const uint64_t cookie_;
  std::atomic<bool> relayed_{false};
  bool ended_ = false;
  bool shut_for_reading_ = false;
  bool shut_for_writing_ = false;
};

}  // namespace weft::sdp
