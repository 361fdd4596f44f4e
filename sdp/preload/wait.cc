// Calls that wait for a listener, among others: the library hears SDP for it from then on. They do
// what libc's do.
#include <poll.h>
#include <sys/select.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <initializer_list>
#include <optional>
#include <vector>

#include "base/guarded.h"
#include "sdp/loop/handlers.h"
#include "sdp/preload/caller.h"
#include "sdp/preload/look_and_wait.h"
#include "sdp/preload/memory.h"
#include "sdp/preload/next.h"
#include "sdp/preload/urgent.h"
#include "sdp/sockets/epoll_set.h"
#include "sdp/sockets/listeners.h"
#include "sdp/sockets/recent.h"
#include "sdp/sockets/stream.h"
#include "sdp/sockets/table.h"
#include "sdp/sockets/urgent_shown.h"
#include "sdp/sockets/zero_copy.h"

using namespace weft::sdp;

namespace {

// Whether it is a connection.
bool about_to_wait(int fd, bool for_end = false) {
  if (Listeners::any_fresh()) (void)if_memory([fd] { Listeners::about_to_wait(fd); });
  EpollSet::make_plain(fd);
  const auto stream = Table::find(fd);
  if (!stream) return false;
  stream->waiting().about_to_wait_elsewhere();
  stream->waiting().about_to_wait(fd, for_end);
  return true;
}

// Whether there is a connection among them.
bool about_to_poll(const pollfd* fds, nfds_t count) {
  bool any = false;
  for (nfds_t i = 0; i < count; ++i)
    any |= about_to_wait(fds[i].fd, (fds[i].events & POLLRDHUP) != 0);
  return any;
}

// Sets of the program's own may be larger than an fd_set.
bool is_in(int fd, const fd_set* set) {
  const auto* words = reinterpret_cast<const fd_mask*>(set);
  return (words[fd / NFDBITS] >> (fd % NFDBITS) & 1) != 0;
}

// What poll(2) is asked for, and the places where reports of MSG_ZEROCOPY show, each for its
// connection.
class Polled {
 public:
  Polled(bool program, pollfd* fds, nfds_t count) : fds_(fds), count_(count) {
    if (!program || !ZeroCopy::any()) return;
    // Without memory the reports are not shown.
    if (if_memory([this] { add_reports(); })) return;
    all_.clear();
    reporting_.clear();
  }
  pollfd* fds() { return all_.empty() ? fds_ : all_.data(); }
  nfds_t count() const { return all_.empty() ? count_ : all_.size(); }
  bool is_more() const { return !all_.empty(); }
  // `n`: what a call came to.
  int result(int n) {
    if (all_.empty() || n < 0) return n;
    for (nfds_t i = 0; i < count_; ++i) fds_[i].revents = all_[i].revents;
    for (size_t i = 0; i < reporting_.size(); ++i) {
      if ((all_[count_ + i].revents & POLLERR) != 0) fds_[reporting_[i]].revents |= POLLERR;
    }
    const auto ready = [](const pollfd& p) { return p.revents != 0; };
    return static_cast<int>(std::count_if(fds_, fds_ + count_, ready));
  }

 private:
  void add_reports() {
    for (nfds_t i = 0; i < count_; ++i) {
      const auto stream = Table::find(fds_[i].fd);
      const int at = stream ? stream->sending().reports_at() : -1;
      if (at < 0) continue;
      if (all_.empty()) all_.assign(fds_, fds_ + count_);
      all_.push_back({at, 0, 0});
      reporting_.push_back(i);
    }
  }
  pollfd* fds_;
  nfds_t count_;
  std::vector<pollfd> all_;
  std::vector<nfds_t> reporting_;
};

bool about_to_select(int count, std::initializer_list<const fd_set*> sets) {
  bool any = false;
  // A program may ask for more than its sets have room for: the kernel looks no further than there
  // are descriptors.
  const int end = std::min(count, std::max(FD_SETSIZE, Table::end()));
  for (int fd = 0; fd < end; ++fd) {
    for (const fd_set* set : sets) {
      if (set != nullptr && is_in(fd, set)) any |= about_to_wait(fd);
    }
  }
  return any;
}

// Whether there may be something of the library's among what a call waits for.
bool may_be_own() {
  if (Table::end() == 0 && !Listeners::any_fresh()) return false;
  guard_memory();
  return true;
}

// The same, and what it asks for can be read. Of what cannot the kernel says so.
bool may_be_own(const pollfd* fds, nfds_t count) {
  constexpr nfds_t kMostDescriptors = 1 << 24;
  return may_be_own() && count <= kMostDescriptors &&
         weft::readable_guarded(fds, count * sizeof *fds);
}

bool may_be_own(int count, std::initializer_list<const fd_set*> sets) {
  if (!may_be_own() || count < 0) return false;
  const size_t bytes = (static_cast<size_t>(count) + NFDBITS - 1) / NFDBITS * sizeof(fd_mask);
  return std::all_of(sets.begin(), sets.end(), [bytes](const fd_set* set) {
    return set == nullptr || weft::readable_guarded(set, bytes);
  });
}

// What a program asks select(2) for, which each call of it overwrites. Its sets have room for
// `count` descriptors, which may be less or more than an fd_set has.
class Asked {
 public:
  Asked(int count, std::array<fd_set*, 3> sets)
      : count_(count),
        sets_{sets},
        bytes_(static_cast<size_t>(count + kInWord - 1) / kInWord * sizeof(fd_mask)) {
    for (size_t i = 0; i < sets_.size(); ++i) {
      if (sets_[i] != nullptr) std::memcpy(&asked_[i], sets_[i], bytes_);
    }
  }
  // Whether there is urgent data that the call asks for.
  bool urgent_waits() const {
    bool any = false;
    for (int fd = 0; sets_[kExceptional] != nullptr && fd < count_; ++fd) {
      if (!is_in(fd, &asked_[kExceptional])) continue;
      const auto stream = Table::find(fd);
      any |= stream && stream->waiting().urgent_waits_for_poll();
    }
    return any;
  }
  // Sets right what the mirrors say of it; `n` is what the call came to.
  int with_urgent(int n, const Handlers::Ran& ran) const {
    if (n < 0 || !UrgentShown::any()) return n;
    for (int fd = 0; fd < count_; ++fd) {
      const auto stream = Table::find(fd);
      const auto polled = stream ? stream->urgent().polled(fd) : std::nullopt;
      if (!polled) continue;
      if (!polled->readable && asks(kReadable, fd)) FD_CLR(fd, sets_[kReadable]);
      if (!asks(kExceptional, fd)) continue;
      const bool urgent = polled->urgent || (ran.any() && is_in(fd, sets_[kExceptional]));
      FD_CLR(fd, sets_[kExceptional]);
      if (urgent) FD_SET(fd, sets_[kExceptional]);
    }
    int found = 0;
    for (fd_set* set : sets_) {
      for (int fd = 0; set != nullptr && fd < count_; ++fd) found += is_in(fd, set) ? 1 : 0;
    }
    return found;
  }
  static bool fits(int count) { return count >= 0 && count <= FD_SETSIZE; }
  void put_back() const {
    for (size_t i = 0; i < sets_.size(); ++i) {
      if (sets_[i] != nullptr) std::memcpy(sets_[i], &asked_[i], bytes_);
    }
  }

 private:
  static constexpr int kInWord = 8 * sizeof(fd_mask);
  static constexpr size_t kReadable = 0;
  static constexpr size_t kExceptional = 2;
  bool asks(size_t which, int fd) const {
    return sets_[which] != nullptr && is_in(fd, &asked_[which]);
  }
  int count_;
  std::array<fd_set*, 3> sets_;
  size_t bytes_;
  std::array<fd_set, 3> asked_{};
};

// Of a call that has connections among others.
std::optional<Asked> asked_of(bool connections, int count, std::array<fd_set*, 3> sets) {
  if (!connections || !Asked::fits(count)) return std::nullopt;
  return Asked{count, sets};
}

// `now` is libc's poll(2), without a wait where it is told true.
template <class Now>
int poll_with_urgent(pollfd* fds, nfds_t count, bool at_once, Now now) {
  const auto urgent = [&] { return urgent_waits_for(fds, count); };
  return wait_with_urgent(at_once, urgent, [&](bool no_wait, int& told, const auto& ran) {
    const int n = now(no_wait);
    told = with_urgent_polled(fds, count, n, ran);
    return n;
  });
}

// The same for select(2), where `asked` is what it was asked for.
template <class Now>
int select_with_urgent(const std::optional<Asked>& asked, bool at_once, Now now) {
  if (!asked) return now(at_once);
  const auto urgent = [&] { return asked->urgent_waits(); };
  return wait_with_urgent(at_once, urgent, [&](bool no_wait, int& told, const auto& ran) {
    asked->put_back();
    const int n = now(no_wait);
    told = asked->with_urgent(n, ran);
    return n;
  });
}

// `wait_now` is one of libc's two calls, without a wait where it is told true.
template <class Wait>
int look_and_select(int count, std::array<fd_set*, 3> sets, bool waits, bool for_connections,
                    Wait wait_now) {
  if (!waits || !Asked::fits(count) || !(Recent::any() || for_connections)) return wait_now(false);
  const Asked asked{count, sets};
  const int n = look_and_wait(true, for_connections, [&](bool at_once) {
    asked.put_back();
    return wait_now(at_once);
  });
  if (n < 0) asked.put_back();  // an error leaves them as they were
  return n;
}

}  // namespace

WEFT_SDP_EXPORT int poll(pollfd* fds, nfds_t count, int timeout) {
  const bool program = WEFT_SDP_FOR_PROGRAM && may_be_own(fds, count);
  const bool connections = program && about_to_poll(fds, count);
  Polled polled{program, fds, count};
  const auto now = [&](bool at_once) {
    const int n = WEFT_SDP_NEXT(poll)(polled.fds(), polled.count(), at_once ? 0 : timeout);
    return polled.result(n);
  };
  const auto wait = [&](bool at_once) {
    return connections ? poll_with_urgent(fds, count, at_once || timeout == 0, now) : now(at_once);
  };
  return look_and_wait(program && timeout != 0, connections, wait);
}

extern "C" int __poll_chk(pollfd* fds, nfds_t count, int timeout, size_t size);
WEFT_SDP_EXPORT int __poll_chk(pollfd* fds, nfds_t count, int timeout, size_t size) {
  const bool program = WEFT_SDP_FOR_PROGRAM && may_be_own(fds, count);
  const bool connections = program && about_to_poll(fds, count);
  // What the program's memory has no room for is libc's to say.
  Polled polled{program && size / sizeof *fds >= count, fds, count};
  if (polled.is_more()) size = polled.count() * sizeof *fds;
  const auto now = [&](bool at_once) {
    const int n =
        WEFT_SDP_NEXT(__poll_chk)(polled.fds(), polled.count(), at_once ? 0 : timeout, size);
    return polled.result(n);
  };
  const auto wait = [&](bool at_once) {
    return connections ? poll_with_urgent(fds, count, at_once || timeout == 0, now) : now(at_once);
  };
  return look_and_wait(program && timeout != 0, connections, wait);
}

WEFT_SDP_EXPORT int ppoll(pollfd* fds, nfds_t count, const timespec* timeout,
                          const sigset_t* mask) {
  const bool program = WEFT_SDP_FOR_PROGRAM && may_be_own(fds, count);
  const bool connections = program && about_to_poll(fds, count);
  Polled polled{program, fds, count};
  const auto now = [&](bool at_once) {
    const int n =
        WEFT_SDP_NEXT(ppoll)(polled.fds(), polled.count(), at_once ? &kAtOnce : timeout, mask);
    return polled.result(n);
  };
  const auto wait = [&](bool at_once) {
    return connections ? poll_with_urgent(fds, count, at_once || !waits_for_some_time(timeout), now)
                       : now(at_once);
  };
  return look_and_wait(program && waits_for_some_time(timeout), connections, wait);
}

extern "C" int __ppoll_chk(pollfd* fds, nfds_t count, const timespec* timeout, const sigset_t* mask,
                           size_t size);
WEFT_SDP_EXPORT int __ppoll_chk(pollfd* fds, nfds_t count, const timespec* timeout,
                                const sigset_t* mask, size_t size) {
  const bool program = WEFT_SDP_FOR_PROGRAM && may_be_own(fds, count);
  const bool connections = program && about_to_poll(fds, count);
  Polled polled{program && size / sizeof *fds >= count, fds, count};
  if (polled.is_more()) size = polled.count() * sizeof *fds;
  const auto now = [&](bool at_once) {
    const int n = WEFT_SDP_NEXT(__ppoll_chk)(polled.fds(), polled.count(),
                                             at_once ? &kAtOnce : timeout, mask, size);
    return polled.result(n);
  };
  const auto wait = [&](bool at_once) {
    return connections ? poll_with_urgent(fds, count, at_once || !waits_for_some_time(timeout), now)
                       : now(at_once);
  };
  return look_and_wait(program && waits_for_some_time(timeout), connections, wait);
}

WEFT_SDP_EXPORT int select(int count, fd_set* readable, fd_set* writable, fd_set* exceptional,
                           timeval* timeout) {
  const bool program = WEFT_SDP_FOR_PROGRAM && may_be_own(count, {readable, writable, exceptional});
  const bool connections = program && about_to_select(count, {readable, writable, exceptional});
  const auto now = [&](bool at_once) {
    timeval none{};
    return WEFT_SDP_NEXT(select)(count, readable, writable, exceptional, at_once ? &none : timeout);
  };
  const bool waits = timeout == nullptr || timeout->tv_sec != 0 || timeout->tv_usec != 0;
  const auto asked = asked_of(connections, count, {readable, writable, exceptional});
  const auto wait = [&](bool at_once) { return select_with_urgent(asked, at_once || !waits, now); };
  return look_and_select(count, {readable, writable, exceptional}, program && waits, connections,
                         wait);
}

WEFT_SDP_EXPORT int pselect(int count, fd_set* readable, fd_set* writable, fd_set* exceptional,
                            const timespec* timeout, const sigset_t* mask) {
  const bool program = WEFT_SDP_FOR_PROGRAM && may_be_own(count, {readable, writable, exceptional});
  const bool connections = program && about_to_select(count, {readable, writable, exceptional});
  const auto now = [&](bool at_once) {
    return WEFT_SDP_NEXT(pselect)(count, readable, writable, exceptional,
                                  at_once ? &kAtOnce : timeout, mask);
  };
  const std::array sets{readable, writable, exceptional};
  const auto asked = asked_of(connections, count, sets);
  const auto wait = [&](bool at_once) {
    return select_with_urgent(asked, at_once || !waits_for_some_time(timeout), now);
  };
  return look_and_select(count, sets, program && waits_for_some_time(timeout), connections, wait);
}
