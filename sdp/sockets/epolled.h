// How the program's epoll waits for one connection: as the program has said, and as the kernel
// knows it, which may be behind (epoll_set.h). A connection that waits in two epolls, or by two
// descriptors, is plain: the kernel alone tells of it.
//
// With the session's lock.
#pragma once

#include <sys/epoll.h>

#include <cstdint>
#include <optional>

#include "sdp/rdma/session.h"
#include "sdp/sockets/epoll_set.h"
#include "sdp/sockets/program_end.h"
#include "sdp/sockets/readiness.h"

namespace weft::sdp {

class Epolled {
 public:
  Epolled(Session& session, const ProgramEnd& end, Readiness& mirror)
      : session_(session), end_(end), mirror_(mirror) {}
  Epolled(const Epolled&) = delete;
  Epolled& operator=(const Epolled&) = delete;

  // A call of epoll_ctl(2) on `fd` that the kernel has done.
  void noted(int epoll, int operation, int fd, const epoll_event& event);
  // One that the program makes: what it comes to, with errno, where the kernel need not know yet,
  // which is so for a `set` that is not nullptr. Else the caller asks the kernel, and says the end
  // of that.
  std::optional<int> control(EpollSet* set, int operation, int fd, const epoll_event& event);
  void control_ended() { --calls_; }
  // There is something to read. True: no token is needed, for the epoll is told without.
  bool tells_without_token();
  // The mirror shows what is.
  void shown();
  // It is no longer in the list of `set`: whether there is something for the epoll of that age, and
  // whether it should be in the list again and cannot, so that the mirror has to tell of it.
  struct Collected {
    bool any = false;
    bool lost_place = false;
  };
  Collected collect(uint64_t age, EpollSet& set, epoll_event& event);
  // The kernel told of it by what it knows. False: the program has not asked for that.
  bool set_right(EpollSet& set, epoll_event& event);
  // The kernel is to know what is registered; it is in no list any more.
  void tell_kernel(EpollSet& set);
  void make_plain();

 private:
  struct Registration {
    bool is = false;
    epoll_event event{};
  };
  bool is_of(const EpollSet& set) const { return set_ == &set && age_ == set.age(); }
  bool is_behind() const;
  bool may_put_off(int operation, const epoll_event& event) const;
  uint32_t ready() const;
  void list_if_ready();
  void bring_up();

  Session& session_;
  const ProgramEnd& end_;
  Readiness& mirror_;
  EpollSet* set_ = nullptr;
  uint64_t age_ = 0;  // of the set
  int fd_ = -1;       // it is registered by
  Registration wanted_;
  Registration kernel_;
  int calls_ = 0;  // that the kernel is asked for now
  bool plain_ = false;
  bool listed_ = false;   // somebody is going to look at it
  bool put_off_ = false;  // the set knows that the kernel may be behind
  bool anew_ = false;     // registered since it was told of
  uint64_t told_ = 0;     // of all that was received, where each arrival is told once
};

}  // namespace weft::sdp
