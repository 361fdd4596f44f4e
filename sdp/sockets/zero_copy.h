// What MSG_ZEROCOPY promises a program that has set SO_ZEROCOPY: each send with the flag has a
// number, and the socket's error queue tells when its memory is the program's again (the kernel's
// Documentation/networking/msg_zerocopy.rst). With the session's lock, but for what is said to be
// for any thread.
#pragma once

#include <sys/socket.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <optional>

#include "sdp/loop/file.h"

namespace weft::sdp {

class ZeroCopy {
 public:
  // The sends from `first` to `last` are through. `copied`: the flag was in vain.
  struct Report {
    uint32_t first = 0;
    uint32_t last = 0;
    bool copied = false;
  };

  ZeroCopy() = default;
  ZeroCopy(const ZeroCopy&) = delete;
  ZeroCopy& operator=(const ZeroCopy&) = delete;
  ~ZeroCopy() { close(); }

  // SO_ZEROCOPY.
  void enable(bool on);
  // Whether a send with these flags has a number. Any thread.
  bool counts(int flags) const { return (flags & MSG_ZEROCOPY) != 0 && enabled_; }
  // One that counts has taken some bytes, and is through with the memory.
  void sent(bool copied);
  // The oldest report.
  std::optional<Report> take();

  // A descriptor that shows an error while there is a report, as the socket would; -1: none. Any
  // thread.
  int shown_at() const { return shown_at_; }
  // Whether any connection of the process has one.
  static bool any() { return g_count > 0; }
  void close();

 private:
  void show(bool reports);

  std::atomic<bool> enabled_{false};
  std::atomic<int> shown_at_{-1};
  uint32_t next_ = 0;
  std::deque<Report> reports_;
  // A pipe: without a reader its other end shows an error.
  File writer_;
  File reader_;
  static inline std::atomic<int> g_count{0};
};

}  // namespace weft::sdp
